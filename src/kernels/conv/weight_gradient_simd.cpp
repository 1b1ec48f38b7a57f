// Register tiles of the weight gradient: 6 x 2 vectors on AVX2, 14 x 2 on AVX-512.
#include "kernels/conv/weight_gradient_simd.hpp"

#include "kernels/common/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/weight_gradient_simd.cpp"
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

#if HWY_TARGET <= HWY_AVX3
constexpr int kMr = 14;
#else
constexpr int kMr = 6;
#endif

template <int MR>
void tile(const GradWRow* rows, int64_t row_count, int64_t count, const float* HWY_RESTRICT a0,
          int64_t as, const float* HWY_RESTRICT b0, int64_t bs, float* HWY_RESTRICT c, int64_t ldc,
          bool first) {
  const D d;
  const int64_t lanes = int64_t(hn::Lanes(d));
  V acc[MR][2];
#pragma GCC unroll 16
  for (int i = 0; i < MR; ++i) {
    acc[i][0] = acc[i][1] = hn::Zero(d);
  }
  for (int64_t r = 0; r < row_count; ++r) {
    const float* HWY_RESTRICT a = a0 + rows[r].dy;
    const float* HWY_RESTRICT b = b0 + rows[r].x;
#pragma GCC unroll 2
    for (int64_t p = 0; p < count; ++p) {
      const V b1 = hn::LoadU(d, b), b2 = hn::LoadU(d, b + lanes);
#pragma GCC unroll 16
      for (int i = 0; i < MR; ++i) {
        const V va = hn::Set(d, a[i]);
        acc[i][0] = hn::MulAdd(va, b1, acc[i][0]);
        acc[i][1] = hn::MulAdd(va, b2, acc[i][1]);
      }
      a += as;
      b += bs;
    }
  }
  // sums of blocks are added up, which is more exact than one long chain
#pragma GCC unroll 16
  for (int i = 0; i < MR; ++i) {
    float *c1 = c + i * ldc, *c2 = c1 + lanes;
    hn::StoreU(first ? acc[i][0] : hn::Add(hn::LoadU(d, c1), acc[i][0]), d, c1);
    hn::StoreU(first ? acc[i][1] : hn::Add(hn::LoadU(d, c2), acc[i][1]), d, c2);
  }
}

void pack(const float* from, int64_t ld, int64_t pixels, int64_t width, int64_t height,
          int64_t after, float* to) {
  const D d;
  const int64_t lanes = int64_t(hn::Lanes(d)), whole = (height + lanes - 1) / lanes * lanes;
  int64_t p = 0;
  // whole vectors: what they write too much is overwritten by the next pixel
  if (width == height && whole - width <= after) {
    const int64_t safe = whole == height ? pixels : pixels - 1;
    for (; p < safe; ++p, from += ld, to += height)
      for (int64_t i = 0; i < whole; i += lanes) hn::StoreU(hn::LoadU(d, from + i), d, to + i);
  }
  for (; p < pixels; ++p, from += ld, to += height) {
    int64_t i = 0;
    for (; i + lanes <= width; i += lanes) hn::StoreU(hn::LoadU(d, from + i), d, to + i);
    for (; i < width; ++i) to[i] = from[i];
    for (; i < height; ++i) to[i] = 0;
  }
}

template <int MR>
void fill(GradWKernels& k) {
  k.tile[MR - 1] = tile<MR>;
  if constexpr (MR > 1) fill<MR - 1>(k);
}

const GradWKernels* make_grad_w_kernels() {
  static const GradWKernels table = [] {
    GradWKernels k{};
    k.mr = kMr;
    k.nr = 2 * int(hn::Lanes(D()));
    k.pack = pack;
    fill<kMr>(k);
    return k;
  }();
  return &table;
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxtrain::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxtrain::simd {
OT_SIMD_TABLE(GradWKernels, grad_w_kernels, make_grad_w_kernels)
}  // namespace onnxtrain::simd
#endif
