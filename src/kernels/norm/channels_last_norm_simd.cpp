// Batch normalisation over chunks of rows. Sums keep a few vectors of channels in registers and go
// down the rows, which are in the cache; maps go along the rows.
#include "kernels/norm/channels_last_norm_simd.hpp"

#include <algorithm>

#include "kernels/common/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm/channels_last_norm_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// after highway.h
#include "kernels/common/loops-inl.hpp"
#include "kernels/common/table-inl.hpp"
#include "kernels/common/vmath-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace onnxtrain::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using vm::D;
using vm::set;
using vm::V;

template <NormAct A>
HWY_INLINE V activated(V v, V low, V high) {
  if constexpr (A == NormAct::kRelu) return hn::IfThenElse(v < hn::Zero(D()), hn::Zero(D()), v);
  if constexpr (A == NormAct::kClip) {
    v = hn::IfThenElse(v < low, low, v);
    return hn::IfThenElse(v > high, high, v);
  }
  return v;
}
template <NormAct A>
HWY_INLINE V let_through(V z, V low, V high, V g) {
  if constexpr (A == NormAct::kRelu) return hn::IfThenElseZero(z > hn::Zero(D()), g);
  if constexpr (A == NormAct::kClip) return hn::IfThenElseZero(hn::And(z >= low, z <= high), g);
  return g;
}

// f(io, c, count) over groups of up to kGroup whole vectors of channels, then one masked rest.
constexpr int kGroup = 4;
template <class F>
HWY_INLINE void channel_groups(int64_t channels, F f) {
  const int64_t lanes = int64_t(hn::Lanes(D()));
  int64_t c = 0;
  for (; c + kGroup * lanes <= channels; c += kGroup * lanes)
    f(WholeIo(), c, std::integral_constant<int, kGroup>());
  for (; c + lanes <= channels; c += lanes) f(WholeIo(), c, std::integral_constant<int, 1>());
  if (c < channels) f(PartIo(channels - c), c, std::integral_constant<int, 1>());
}

// Sums go over blocks of rows and then over blocks: as exact as a sum in several accumulators.
constexpr int64_t kBlock = 8;

void statistics(int64_t rows, int64_t channels, const float* x, float* mean, float* squares) {
  const int64_t lanes = int64_t(hn::Lanes(D()));
  const V inverse = set(1.0f / float(rows));
  channel_groups(channels, [&](auto io, int64_t c, auto count) HWY_ATTR {
    constexpr int n = decltype(count)::value;
    V sum[n], m[n], sq[n], left[n];
    for (int k = 0; k < n; ++k) sum[k] = hn::Zero(D());
    for (int64_t r = 0; r < rows; ++r)
#pragma GCC unroll 4
      for (int k = 0; k < n; ++k)
        sum[k] = hn::Add(sum[k], io.load(x + r * channels + c + k * lanes));
    for (int k = 0; k < n; ++k) {
      m[k] = hn::Mul(sum[k], inverse);
      sq[k] = left[k] = hn::Zero(D());
    }
    for (int64_t from = 0; from < rows; from += kBlock) {
      V block[n];
      for (int k = 0; k < n; ++k) block[k] = hn::Zero(D());
      for (int64_t r = from; r < std::min(rows, from + kBlock); ++r)
#pragma GCC unroll 4
        for (int k = 0; k < n; ++k) {
          const V d = hn::Sub(io.load(x + r * channels + c + k * lanes), m[k]);
          block[k] = hn::MulAdd(d, d, block[k]);
          left[k] = hn::Add(left[k], d);
        }
      for (int k = 0; k < n; ++k) sq[k] = hn::Add(sq[k], block[k]);
    }
    for (int k = 0; k < n; ++k) {  // what is left of the first moment corrects the mean
      const V more = hn::Mul(left[k], inverse);
      io.store(hn::Add(m[k], more), mean + c + k * lanes);
      io.store(hn::NegMulAdd(left[k], more, sq[k]), squares + c + k * lanes);
    }
  });
}

template <NormAct A, bool kResidual>
void apply_as(int64_t rows, int64_t channels, const float* x, const float* a, const float* b,
              const float* residual, NormActivation act, float* y) {
  const V low = set(act.low), high = set(act.high);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t at = r * channels;
    each_vector(channels, [&](auto io, int64_t c) HWY_ATTR {
      V v = hn::MulAdd(io.load(x + at + c), io.load(a + c), io.load(b + c));
      if constexpr (kResidual) v = hn::Add(v, io.load(residual + at + c));
      io.store(activated<A>(v, low, high), y + at + c);
    });
  }
}

void apply(int64_t rows, int64_t channels, const float* x, const float* a, const float* b,
           const float* residual, NormActivation act, float* y) {
  auto go = [&](auto kind) {
    constexpr NormAct A = decltype(kind)::value;
    (residual ? apply_as<A, true> : apply_as<A, false>)(rows, channels, x, a, b, residual, act, y);
  };
  if (act.kind == NormAct::kRelu)
    go(std::integral_constant<NormAct, NormAct::kRelu>());
  else if (act.kind == NormAct::kClip)
    go(std::integral_constant<NormAct, NormAct::kClip>());
  else
    go(std::integral_constant<NormAct, NormAct::kNone>());
}

template <NormAct A, bool kFromY>
HWY_INLINE void grad_sums_as(int64_t rows, int64_t channels, const NormGrad& n, float* g,
                             float* sum, float* dot) {
  const int64_t lanes = int64_t(hn::Lanes(D()));
  const V low = set(n.act.low), high = set(n.act.high);
  channel_groups(channels, [&](auto io, int64_t c, auto count) HWY_ATTR {
    constexpr int num = decltype(count)::value;
    V s[num], t[num], m[num], a[num], b[num];
    for (int k = 0; k < num; ++k) {
      s[k] = t[k] = a[k] = b[k] = hn::Zero(D());
      m[k] = io.load(n.mean + c + k * lanes);
      if constexpr (A != NormAct::kNone && !kFromY) {
        a[k] = io.load(n.a + c + k * lanes);
        b[k] = io.load(n.b + c + k * lanes);
      }
    }
    for (int64_t from = 0; from < rows; from += kBlock) {
      V sums[num], dots[num];
      for (int k = 0; k < num; ++k) sums[k] = dots[k] = hn::Zero(D());
      for (int64_t r = from; r < std::min(rows, from + kBlock); ++r)
#pragma GCC unroll 4
        for (int k = 0; k < num; ++k) {
          const int64_t at = r * channels + c + k * lanes;
          const V x = io.load(n.x + at);
          V v = io.load(n.dy + at);
          if constexpr (A != NormAct::kNone) {
            const V z = kFromY ? io.load(n.y + at) : hn::MulAdd(x, a[k], b[k]);
            v = let_through<A>(z, low, high, v);
          }
          if (g) io.store(v, g + at);
          sums[k] = hn::Add(sums[k], v);
          dots[k] = hn::MulAdd(v, hn::Sub(x, m[k]), dots[k]);
        }
      for (int k = 0; k < num; ++k) {
        s[k] = hn::Add(s[k], sums[k]);
        t[k] = hn::Add(t[k], dots[k]);
      }
    }
    for (int k = 0; k < num; ++k) {
      io.store(s[k], sum + c + k * lanes);
      io.store(t[k], dot + c + k * lanes);
    }
  });
}

template <NormAct A, bool kFromY>
HWY_INLINE void grad_apply_as(int64_t rows, int64_t channels, const NormGrad& n, const float* q,
                              const float* shift, float* dx) {
  const V low = set(n.act.low), high = set(n.act.high);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t at = r * channels;
    each_vector(channels, [&](auto io, int64_t c) HWY_ATTR {
      const V x = io.load(n.x + at + c), a = io.load(n.a + c);
      V g = io.load(n.dy + at + c);
      if constexpr (A != NormAct::kNone) {
        const V z = kFromY ? io.load(n.y + at + c) : hn::MulAdd(x, a, io.load(n.b + c));
        g = let_through<A>(z, low, high, g);
      }
      const V rest = hn::MulAdd(x, io.load(q + c), io.load(shift + c));
      io.store(hn::MulAdd(g, a, rest), dx + at + c);
    });
  }
}

template <class F>
HWY_INLINE void by_activation(const NormGrad& n, F f) {
  using Relu = std::integral_constant<NormAct, NormAct::kRelu>;
  using Clip = std::integral_constant<NormAct, NormAct::kClip>;
  if (n.act.kind == NormAct::kRelu && n.y)
    f(Relu(), std::true_type());
  else if (n.act.kind == NormAct::kRelu)
    f(Relu(), std::false_type());
  else if (n.act.kind == NormAct::kClip)
    f(Clip(), std::false_type());
  else
    f(std::integral_constant<NormAct, NormAct::kNone>(), std::false_type());
}

void grad_sums(int64_t rows, int64_t channels, const NormGrad& n, float* g, float* sum,
               float* dot) {
  by_activation(n, [&](auto a, auto y) {
    grad_sums_as<decltype(a)::value, decltype(y)::value>(rows, channels, n, g, sum, dot);
  });
}

void grad_apply(int64_t rows, int64_t channels, const NormGrad& n, const float* q,
                const float* shift, float* dx) {
  by_activation(n, [&](auto a, auto y) {
    grad_apply_as<decltype(a)::value, decltype(y)::value>(rows, channels, n, q, shift, dx);
  });
}

const ChannelNormKernels* make_channel_norm() {
  static const ChannelNormKernels table{statistics, apply, grad_sums, grad_apply};
  return &table;
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxtrain::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxtrain::simd {
OT_SIMD_TABLE(ChannelNormKernels, channel_norm_kernels, make_channel_norm)
}  // namespace onnxtrain::simd
#endif
