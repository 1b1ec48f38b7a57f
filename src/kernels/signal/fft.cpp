// Discrete Fourier transforms.
#include "kernels/signal/fft.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace onnxtrain::kernels {

namespace {
CountedVector<Fft::C> roots_of(int64_t n) {
  CountedVector<Fft::C> r(size_t(n / 2 > 0 ? n / 2 : 1));
  for (size_t k = 0; k < r.size(); ++k)
    r[k] = std::polar(1.0, -2 * std::numbers::pi * double(k) / double(n));
  return r;
}
}  // namespace

Fft::Fft(int64_t n) : n_(n) {
  if (n < 1) return;
  bool power = (n & (n - 1)) == 0;
  m_ = 1;
  while (m_ < (power ? n : 2 * n - 1)) m_ *= 2;
  roots_ = roots_of(m_);
  if (power) return;
  chirp_.resize(size_t(n));
  for (int64_t k = 0; k < n; ++k) {
    // k*k modulo 2n keeps the angle exact
    int64_t square = int64_t(__int128(k) * k % (2 * n));
    chirp_[size_t(k)] = std::polar(1.0, -std::numbers::pi * double(square) / double(n));
  }
  kernel_.assign(size_t(m_), C(0));
  for (int64_t k = 0; k < n; ++k) {
    kernel_[size_t(k)] = std::conj(chirp_[size_t(k)]);
    if (k) kernel_[size_t(m_ - k)] = std::conj(chirp_[size_t(k)]);
  }
  radix2(kernel_.data(), m_, false, roots_);
}

void Fft::radix2(C* a, int64_t n, bool backward, const CountedVector<C>& roots) const {
  for (int64_t i = 1, j = 0; i < n; ++i) {
    int64_t bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(a[i], a[j]);
  }
  for (int64_t len = 2; len <= n; len *= 2) {
    int64_t half = len / 2, step = n / len;
    for (int64_t i = 0; i < n; i += len)
      for (int64_t k = 0; k < half; ++k) {
        C w = roots[size_t(k * step)];
        if (backward) w = std::conj(w);
        C u = a[i + k], v = a[i + k + half] * w;
        a[i + k] = u + v;
        a[i + k + half] = u - v;
      }
  }
}

void Fft::run(C* data, bool backward, C* scratch) const {
  if (n_ <= 1) return;
  if (chirp_.empty()) return radix2(data, n_, backward, roots_);
  // backward is the conjugate of the forward transform of the conjugate
  C* a = scratch;
  for (int64_t k = 0; k < m_; ++k) a[k] = 0;
  for (int64_t k = 0; k < n_; ++k)
    a[k] = (backward ? std::conj(data[k]) : data[k]) * chirp_[size_t(k)];
  radix2(a, m_, false, roots_);
  for (int64_t k = 0; k < m_; ++k) a[k] *= kernel_[size_t(k)];
  radix2(a, m_, true, roots_);
  for (int64_t k = 0; k < n_; ++k) {
    C v = a[k] / double(m_) * chirp_[size_t(k)];
    data[k] = backward ? std::conj(v) : v;
  }
}

// ---------------------------------------------------------------- float
bool FloatFft::supports(int64_t n) {
  if (n < 1) return false;
  for (int64_t f : {2, 3, 5})
    while (n % f == 0) n /= f;
  return n == 1;
}

FloatFft::FloatFft(int64_t n) : n_(n) {
  std::vector<int64_t> radices;
  int64_t rest = n;
  for (; rest % 4 == 0; rest /= 4) radices.push_back(4);
  if (rest % 2 == 0) {
    rest /= 2;
    radices.push_back(2);
    std::swap(radices.front(), radices.back());
  }
  for (int64_t f : {3, 5})
    for (; rest % f == 0; rest /= f) radices.push_back(f);
  int64_t before = 1;
  for (int64_t r : radices) {
    Pass p{r, before, {}};
    int64_t inner = n / (before * r);
    for (int64_t j = 1; j < r; ++j)
      for (int64_t i = 0; i < inner; ++i)
        p.twiddles.push_back(
            C(std::polar(1.0, 2 * std::numbers::pi * double(j * before * i) / double(n))));
    passes_.push_back(std::move(p));
    before *= r;
  }
}

namespace {

using C = std::complex<float>;

// times +i (backward) or -i
C turned(C v, bool backward) { return backward ? C(-v.imag(), v.real()) : C(v.imag(), -v.real()); }

// A transform of length 2 to 5, in place.
void small(C* t, int64_t n, bool backward) {
  float sign = backward ? 1.0f : -1.0f;
  if (n == 2) {
    C a = t[0], b = t[1];
    t[0] = a + b, t[1] = a - b;
  } else if (n == 3) {
    float wi = sign * 0.86602540378443864676f;
    C sum = t[1] + t[2], diff = t[1] - t[2];
    C ca(t[0].real() + -0.5f * sum.real(), t[0].imag() + -0.5f * sum.imag());
    C cb(-(wi * diff.imag()), wi * diff.real());
    t[0] += sum;
    t[1] = ca + cb, t[2] = ca - cb;
  } else if (n == 4) {
    C a = t[0] + t[2], b = t[0] - t[2], c = t[1] + t[3], d = turned(t[1] - t[3], backward);
    t[0] = a + c, t[2] = a - c, t[1] = b + d, t[3] = b - d;
  } else {
    float w1r = 0.3090169943749474241f, w1i = sign * 0.95105651629515357212f;
    float w2r = -0.8090169943749474241f, w2i = sign * 0.58778525229247312917f;
    C t0 = t[0], t1 = t[1] + t[4], t4 = t[1] - t[4], t2 = t[2] + t[3], t3 = t[2] - t[3];
    t[0] = C(t0.real() + t1.real() + t2.real(), t0.imag() + t1.imag() + t2.imag());
    C ca(t0.real() + w1r * t1.real() + w2r * t2.real(),
         t0.imag() + w1r * t1.imag() + w2r * t2.imag());
    C cb(-(w1i * t4.imag() + w2i * t3.imag()), w1i * t4.real() + w2i * t3.real());
    t[1] = ca + cb, t[4] = ca - cb;
    C cc(t0.real() + w2r * t1.real() + w1r * t2.real(),
         t0.imag() + w2r * t1.imag() + w1r * t2.imag());
    C cd(-(w2i * t4.imag() - w1i * t3.imag()), w2i * t4.real() - w1i * t3.real());
    t[2] = cc + cd, t[3] = cc - cd;
  }
}

C times(C v, C w, bool backward) {
  if (backward)
    return C(v.real() * w.real() - v.imag() * w.imag(), v.real() * w.imag() + v.imag() * w.real());
  return C(v.real() * w.real() + v.imag() * w.imag(), v.imag() * w.real() - v.real() * w.imag());
}

}  // namespace

void FloatFft::run_pass(const Pass& p, const C* from, C* to, bool backward) const {
  int64_t inner = n_ / (p.before * p.radix);
  C t[5];
  for (int64_t k = 0; k < p.before; ++k)
    for (int64_t i = 0; i < inner; ++i) {
      for (int64_t j = 0; j < p.radix; ++j) t[j] = from[i + inner * (j + p.radix * k)];
      small(t, p.radix, backward);
      to[i + inner * k] = t[0];
      for (int64_t j = 1; j < p.radix; ++j)
        to[i + inner * (k + p.before * j)] =
            i == 0 ? t[j] : times(t[j], p.twiddles[size_t((j - 1) * inner + i)], backward);
    }
}

void FloatFft::run(C* data, bool backward, C* scratch) const {
  C *from = data, *to = scratch;
  for (const Pass& p : passes_) {
    run_pass(p, from, to, backward);
    std::swap(from, to);
  }
  if (from != data) std::copy(from, from + n_, data);
}

}  // namespace onnxtrain::kernels
