// Discrete Fourier transforms.
#include "kernels/ref/fft.hpp"

#include <cmath>
#include <numbers>

namespace onnxtrain::kernels {

namespace {
std::vector<Fft::C> roots_of(int64_t n) {
  std::vector<Fft::C> r(size_t(n / 2 > 0 ? n / 2 : 1));
  for (size_t k = 0; k < r.size(); ++k) r[k] = std::polar(1.0, -2 * std::numbers::pi * double(k) / double(n));
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

void Fft::radix2(C* a, int64_t n, bool backward, const std::vector<C>& roots) const {
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
  for (int64_t k = 0; k < n_; ++k) a[k] = (backward ? std::conj(data[k]) : data[k]) * chirp_[size_t(k)];
  radix2(a, m_, false, roots_);
  for (int64_t k = 0; k < m_; ++k) a[k] *= kernel_[size_t(k)];
  radix2(a, m_, true, roots_);
  for (int64_t k = 0; k < n_; ++k) {
    C v = a[k] / double(m_) * chirp_[size_t(k)];
    data[k] = backward ? std::conj(v) : v;
  }
}

}  // namespace onnxtrain::kernels
