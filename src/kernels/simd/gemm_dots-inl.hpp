// Products by dot products (few rows, B transposed) and the ordered sum of split-K parts.
// Included once per instruction set.
#if defined(ONNXTRAIN_GEMM_DOTS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ONNXTRAIN_GEMM_DOTS_INL
#undef ONNXTRAIN_GEMM_DOTS_INL
#else
#define ONNXTRAIN_GEMM_DOTS_INL
#endif

#include "hwy/highway.h"
#include "kernels/simd/gemm_kernels.hpp"
#include "kernels/simd/loops-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace onnxtrain::simd {
namespace HWY_NAMESPACE {

// MR x NJ dot products; every one is summed the same way whatever MR and NJ.
template <int MR, int NJ>
void dot_block(int64_t k, const float* HWY_RESTRICT a, int64_t lda, const float* HWY_RESTRICT b,
               int64_t ldb, float* HWY_RESTRICT c, int64_t ldc, float alpha, float beta,
               TileStore store) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> d;
  const int64_t lanes = int64_t(hn::Lanes(d));
  hn::Vec<decltype(d)> acc[MR][NJ];
#pragma GCC unroll 16
  for (int i = 0; i < MR; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < NJ; ++j) acc[i][j] = hn::Zero(d);
  }
  int64_t p = 0;
  for (; p + lanes <= k; p += lanes) {
    hn::Vec<decltype(d)> va[MR];
#pragma GCC unroll 16
    for (int i = 0; i < MR; ++i) va[i] = hn::LoadU(d, a + i * lda + p);
#pragma GCC unroll 16
    for (int j = 0; j < NJ; ++j) {
      const auto vb = hn::LoadU(d, b + j * ldb + p);
#pragma GCC unroll 16
      for (int i = 0; i < MR; ++i) acc[i][j] = hn::MulAdd(va[i], vb, acc[i][j]);
    }
  }
  if (p < k) {
    const PartIo io(k - p);
#pragma GCC unroll 16
    for (int i = 0; i < MR; ++i) {
      const auto va = io.load(a + i * lda + p);
#pragma GCC unroll 16
      for (int j = 0; j < NJ; ++j) {
        acc[i][j] = hn::MulAdd(va, io.load(b + j * ldb + p), acc[i][j]);
      }
    }
  }
  for (int i = 0; i < MR; ++i) {
    for (int j = 0; j < NJ; ++j) {
      const float s = alpha * hn::GetLane(hn::SumOfLanes(d, acc[i][j]));
      float& out = c[i * ldc + j];
      out = store == TileStore::kOverwrite ? s : (store == TileStore::kAdd ? out : beta * out) + s;
    }
  }
}

template <int MR, int NJ>
void dot_rows(int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb,
              float* c, int64_t ldc, float alpha, float beta, TileStore store) {
  int64_t j = 0;
  for (; j + NJ <= n; j += NJ) {
    dot_block<MR, NJ>(k, a, lda, b + j * ldb, ldb, c + j, ldc, alpha, beta, store);
  }
  for (; j < n; ++j) {
    dot_block<MR, 1>(k, a, lda, b + j * ldb, ldb, c + j, ldc, alpha, beta, store);
  }
}

inline void dots(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                 int64_t ldb, float* c, int64_t ldc, float alpha, float beta, TileStore store) {
  switch (m) {
    case 1:
      return dot_rows<1, 8>(n, k, a, lda, b, ldb, c, ldc, alpha, beta, store);
    case 2:
      return dot_rows<2, 4>(n, k, a, lda, b, ldb, c, ldc, alpha, beta, store);
    case 3:
      return dot_rows<3, 3>(n, k, a, lda, b, ldb, c, ldc, alpha, beta, store);
    default:
      return dot_rows<4, 2>(n, k, a, lda, b, ldb, c, ldc, alpha, beta, store);
  }
}

// sum[n] = a (k elements, as apart) times the rows of B. B is read in the order of memory, eight
// rows at a time; each element is one chain in the order of k.
inline void row_times_matrix(int64_t n, int64_t k, const float* HWY_RESTRICT a, int64_t as,
                             const float* HWY_RESTRICT b, int64_t ldb, float* HWY_RESTRICT sum) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const int64_t lanes = int64_t(hn::Lanes(d));
  for (int64_t j = 0; j < n; ++j) sum[j] = 0;
  int64_t p = 0;
  for (; p + 8 <= k; p += 8) {
    V w[8];
#pragma GCC unroll 8
    for (int q = 0; q < 8; ++q) w[q] = hn::Set(d, a[(p + q) * as]);
    const float* HWY_RESTRICT row = b + p * ldb;
    int64_t j = 0;
    for (; j + lanes <= n; j += lanes) {
      V s = hn::LoadU(d, sum + j);
#pragma GCC unroll 8
      for (int q = 0; q < 8; ++q) s = hn::MulAdd(w[q], hn::LoadU(d, row + q * ldb + j), s);
      hn::StoreU(s, d, sum + j);
    }
    if (j < n) {
      const PartIo io(n - j);
      V s = hn::LoadU(d, sum + j);  // the caller's buffer is padded
#pragma GCC unroll 8
      for (int q = 0; q < 8; ++q) s = hn::MulAdd(w[q], io.load(row + q * ldb + j), s);
      hn::StoreU(s, d, sum + j);
    }
  }
  for (; p < k; ++p) {
    const V w = hn::Set(d, a[p * as]);
    const float* HWY_RESTRICT row = b + p * ldb;
    int64_t j = 0;
    for (; j + lanes <= n; j += lanes) {
      hn::StoreU(hn::MulAdd(w, hn::LoadU(d, row + j), hn::LoadU(d, sum + j)), d, sum + j);
    }
    if (j < n) {
      const PartIo io(n - j);
      hn::StoreU(hn::MulAdd(w, io.load(row + j), hn::LoadU(d, sum + j)), d, sum + j);
    }
  }
}

inline void sum_parts(int64_t m, int64_t n, int parts, const float* HWY_RESTRICT part,
                      int64_t part_stride, int64_t ld_part, float* HWY_RESTRICT c, int64_t ldc,
                      float beta, TileStore store) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> d;
  const int64_t lanes = int64_t(hn::Lanes(d));
  for (int64_t i = 0; i < m; ++i) {
    float* HWY_RESTRICT row = c + i * ldc;
    const float* HWY_RESTRICT src = part + i * ld_part;
    int64_t j = 0;
    for (; j + lanes <= n; j += lanes) {
      auto s = hn::LoadU(d, src + j);
      for (int p = 1; p < parts; ++p) s = hn::Add(s, hn::LoadU(d, src + p * part_stride + j));
      if (store == TileStore::kAdd) s = hn::Add(hn::LoadU(d, row + j), s);
      if (store == TileStore::kBeta) {
        s = hn::Add(hn::Mul(hn::Set(d, beta), hn::LoadU(d, row + j)), s);
      }
      hn::StoreU(s, d, row + j);
    }
    for (; j < n; ++j) {
      float s = src[j];
      for (int p = 1; p < parts; ++p) s += src[p * part_stride + j];
      row[j] = store == TileStore::kOverwrite ? s
               : store == TileStore::kAdd     ? row[j] + s
                                              : beta * row[j] + s;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxtrain::simd
HWY_AFTER_NAMESPACE();
#endif
