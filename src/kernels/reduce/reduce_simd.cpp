// Vector parts of reduce.hpp; how the work is split is in reduce.cpp.
#include "kernels/reduce/reduce_simd.hpp"

#include <limits>

#include "kernels/common/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce/reduce_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// after highway.h
#include "kernels/common/loops-inl.hpp"
#include "kernels/common/table-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace onnxtrain::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

template <Reduce R>
HWY_INLINE V start() {
  if constexpr (R == Reduce::kMax) return hn::Set(D(), -std::numeric_limits<float>::infinity());
  if constexpr (R == Reduce::kMin) return hn::Set(D(), std::numeric_limits<float>::infinity());
  return hn::Zero(D());
}

template <Reduce R>
HWY_INLINE V step(V acc, V x) {
  if constexpr (R == Reduce::kSumSquare) return hn::MulAdd(x, x, acc);
  if constexpr (R == Reduce::kSumAbs) return hn::Add(acc, hn::Abs(x));
  if constexpr (R == Reduce::kMax) return hn::IfThenElse(hn::Or(x > acc, hn::IsNaN(x)), x, acc);
  if constexpr (R == Reduce::kMin) return hn::IfThenElse(hn::Or(x < acc, hn::IsNaN(x)), x, acc);
  return hn::Add(acc, x);
}

// Joins two partial results (sums of squares are already sums).
template <Reduce R>
HWY_INLINE V join(V a, V b) {
  if constexpr (R == Reduce::kMax || R == Reduce::kMin) return step<R>(a, b);
  return hn::Add(a, b);
}

template <Reduce R>
HWY_INLINE float across(V v) {
  const D d;
  if constexpr (R == Reduce::kMax || R == Reduce::kMin) {
    HWY_ALIGN float lane[hn::MaxLanes(D())];
    hn::Store(v, d, lane);
    float r = lane[0];
    for (size_t i = 1; i < hn::Lanes(d); ++i) {
      const bool better = R == Reduce::kMax ? lane[i] > r : lane[i] < r;
      if (better || lane[i] != lane[i]) r = lane[i];
    }
    return r;
  }
  return hn::GetLane(hn::SumOfLanes(d, v));
}

template <Reduce R>
float contiguous(const float* HWY_RESTRICT x, int64_t n) {
  const D d;
  const int64_t lanes = int64_t(hn::Lanes(d));
  V a[8];
#pragma GCC unroll 8
  for (int j = 0; j < 8; ++j) a[j] = start<R>();
  int64_t i = 0;
  for (; i + 8 * lanes <= n; i += 8 * lanes) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) a[j] = step<R>(a[j], hn::LoadU(d, x + i + j * lanes));
  }
  for (; i + lanes <= n; i += lanes) a[0] = step<R>(a[0], hn::LoadU(d, x + i));
  if (i < n) {
    const PartIo io(n - i);
    a[1] = step<R>(a[1], hn::IfThenElse(io.mask, io.load(x + i), start<R>()));
  }
#pragma GCC unroll 8
  for (int w = 4; w > 0; w /= 2) {
    for (int j = 0; j < w; ++j) a[j] = join<R>(a[j], a[j + w]);
  }
  return across<R>(a[0]);
}

float dot_kernel(const float* HWY_RESTRICT x, const float* HWY_RESTRICT y, int64_t n) {
  const D d;
  const int64_t lanes = int64_t(hn::Lanes(d));
  V a[4];
  for (int j = 0; j < 4; ++j) a[j] = hn::Zero(d);
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      a[j] = hn::MulAdd(hn::LoadU(d, x + i + j * lanes), hn::LoadU(d, y + i + j * lanes), a[j]);
    }
  }
  for (; i + lanes <= n; i += lanes) {
    a[0] = hn::MulAdd(hn::LoadU(d, x + i), hn::LoadU(d, y + i), a[0]);
  }
  if (i < n) {
    const PartIo io(n - i);
    a[1] = hn::MulAdd(io.load(x + i), io.load(y + i), a[1]);
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a[0], a[2]), hn::Add(a[1], a[3]))));
}

// out[n] = reduction of k rows. Each column is one chain in the order of the rows.
template <Reduce R>
void rows(const float* HWY_RESTRICT x, int64_t k, int64_t n, int64_t ld, float* HWY_RESTRICT out) {
  const D d;
  const int64_t lanes = int64_t(hn::Lanes(d));
  int64_t j = 0;
  for (; j + 4 * lanes <= n; j += 4 * lanes) {
    V a = start<R>(), b = a, c = a, e = a;
    const float* p = x + j;
    for (int64_t i = 0; i < k; ++i, p += ld) {
      a = step<R>(a, hn::LoadU(d, p));
      b = step<R>(b, hn::LoadU(d, p + lanes));
      c = step<R>(c, hn::LoadU(d, p + 2 * lanes));
      e = step<R>(e, hn::LoadU(d, p + 3 * lanes));
    }
    hn::StoreU(a, d, out + j);
    hn::StoreU(b, d, out + j + lanes);
    hn::StoreU(c, d, out + j + 2 * lanes);
    hn::StoreU(e, d, out + j + 3 * lanes);
  }
  each_vector(n - j, [&](auto io, int64_t v) HWY_ATTR {
    V a = start<R>();
    const float* p = x + j + v;
    for (int64_t i = 0; i < k; ++i, p += ld) a = step<R>(a, io.load(p));
    io.store(a, out + j + v);
  });
}

template <Reduce R>
void put(ReduceKernels& t) {
  t.contiguous[size_t(R)] = contiguous<R>;
  t.rows[size_t(R)] = rows<R>;
}

const ReduceKernels* make_reduce() {
  static const ReduceKernels table = [] {
    ReduceKernels t{};
    put<Reduce::kSum>(t);
    put<Reduce::kMean>(t);
    put<Reduce::kSumSquare>(t);
    put<Reduce::kSumAbs>(t);
    put<Reduce::kMax>(t);
    put<Reduce::kMin>(t);
    t.dot = dot_kernel;
    return t;
  }();
  return &table;
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxtrain::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxtrain::simd {
OT_SIMD_TABLE(ReduceKernels, reduce_kernels, make_reduce)
}  // namespace onnxtrain::simd
#endif
