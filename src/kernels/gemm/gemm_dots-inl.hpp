// GEMMs by dot products (few rows or columns, both operands contiguous along k), GEMMs of few
// multiplications per element, and the ordered sum of split-K parts.
// Included once per instruction set.
#if defined(ONNXTRAIN_GEMM_DOTS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ONNXTRAIN_GEMM_DOTS_INL
#undef ONNXTRAIN_GEMM_DOTS_INL
#else
#define ONNXTRAIN_GEMM_DOTS_INL
#endif

#include "hwy/highway.h"
#include "kernels/common/loops-inl.hpp"
#include "kernels/gemm/gemm_simd.hpp"

HWY_BEFORE_NAMESPACE();
namespace onnxtrain::simd {
namespace HWY_NAMESPACE {

// out[0..3] = the sums of the lanes of four vectors, each added in the same order
template <class V>
HWY_INLINE void sum_lanes_of4(V a, V b, V c, V e, float* HWY_RESTRICT out) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> d;
  const hn::Repartition<double, decltype(d)> dd;
  const V ab = hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
  const V ce = hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e));
  const auto lo = hn::InterleaveLower(dd, hn::BitCast(dd, ab), hn::BitCast(dd, ce));
  const auto hi = hn::InterleaveUpper(dd, hn::BitCast(dd, ab), hn::BitCast(dd, ce));
  const V four = hn::Add(hn::BitCast(d, lo), hn::BitCast(d, hi));  // in every block of 4 lanes
  const auto fold = [](auto self, auto tag, auto v) HWY_ATTR {
    if constexpr (hn::MaxLanes(decltype(tag)()) <= 4) {
      return v;
    } else {
      const hn::Half<decltype(tag)> half;
      return self(self, half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
    }
  };
  hn::StoreU(fold(fold, d, four), hn::CappedTag<float, 4>(), out);
}

// MR x NJ dot products, element (i,j) at c[i*ldc + j*step], bias per i; every one is summed the
// same way whatever MR and NJ.
template <int MR, int NJ>
void dot_block(int64_t k, const float* HWY_RESTRICT a, int64_t lda, const float* HWY_RESTRICT b,
               int64_t ldb, const TileOut& to, int64_t step) {
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
  alignas(64) float sums[(MR * NJ + 3) / 4 * 4];
#pragma GCC unroll 16
  for (int q = 0; q < MR * NJ; q += 4) {
    const auto at = [&](int r) HWY_ATTR { return acc[HWY_MIN(r, MR * NJ - 1) / NJ][r % NJ]; };
    sum_lanes_of4(at(q), at(HWY_MIN(q + 1, MR * NJ - 1)), at(HWY_MIN(q + 2, MR * NJ - 1)),
                  at(HWY_MIN(q + 3, MR * NJ - 1)), sums + q);
  }
#pragma GCC unroll 16
  for (int i = 0; i < MR; ++i) {
    const float add = to.bias ? to.bias[i] : 0.0f;
#pragma GCC unroll 16
    for (int j = 0; j < NJ; ++j) {
      const float s = to.alpha * sums[i * NJ + j];
      float& out = to.c[i * to.ldc + j * step];
      const float old = to.store == TileStore::kOverwrite ? 0.0f
                        : to.store == TileStore::kAdd     ? out
                                                          : to.beta * out;
      out = old + s + add;
    }
  }
}

template <int MR, int NJ>
void dot_rows(int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb,
              TileOut to, int64_t step) {
  int64_t j = 0;
  for (; j + NJ <= n; j += NJ, to.c += NJ * step) {
    dot_block<MR, NJ>(k, a, lda, b + j * ldb, ldb, to, step);
  }
  for (; j < n; ++j, to.c += step) dot_block<MR, 1>(k, a, lda, b + j * ldb, ldb, to, step);
}

inline void dots(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
                 int64_t ldb, const TileOut& to, int64_t step) {
  switch (m) {
    case 1:
      return dot_rows<1, 8>(n, k, a, lda, b, ldb, to, step);
    case 2:
      return dot_rows<2, 4>(n, k, a, lda, b, ldb, to, step);
    case 3:
      return dot_rows<3, 3>(n, k, a, lda, b, ldb, to, step);
    default:
      return dot_rows<4, 2>(n, k, a, lda, b, ldb, to, step);
  }
}

// MR rows of the GEMM, K multiplications per element: c is written once, in memory's order.
template <int K, int MR>
HWY_INLINE void outer_rows(int64_t n, const float* HWY_RESTRICT a, int64_t ai, int64_t ap,
                           const float* HWY_RESTRICT b, int64_t ldb, const TileOut& to) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  V va[MR][K];
#pragma GCC unroll 16
  for (int i = 0; i < MR; ++i) {
#pragma GCC unroll 16
    for (int p = 0; p < K; ++p) va[i][p] = hn::Set(d, to.alpha * a[i * ai + p * ap]);
  }
  const V beta = hn::Set(d, to.store == TileStore::kBeta ? to.beta : 1.0f);
  const auto columns = [&](auto finish) HWY_ATTR {
    each_vector(n, [&](auto io, int64_t j) HWY_ATTR {
      V vb[K];
#pragma GCC unroll 16
      for (int p = 0; p < K; ++p) vb[p] = io.load(b + p * ldb + j);
#pragma GCC unroll 16
      for (int i = 0; i < MR; ++i) {
        V s = hn::Mul(va[i][0], vb[0]);
#pragma GCC unroll 16
        for (int p = 1; p < K; ++p) s = hn::MulAdd(va[i][p], vb[p], s);
        float* c = to.c + i * to.ldc + j;
        io.store(finish(io, s, c, j), c);
      }
    });
  };
  const auto with_c = [&](auto io, V s, const float* c)
                          HWY_ATTR { return hn::MulAdd(beta, io.load(c), s); };
  const bool over = to.store == TileStore::kOverwrite;
  if (over && to.bias)
    columns([&](auto io, V s, const float*, int64_t j)
                HWY_ATTR { return hn::Add(s, io.load(to.bias + j)); });
  else if (over)
    columns([&](auto, V s, const float*, int64_t) HWY_ATTR { return s; });
  else if (to.bias)
    columns([&](auto io, V s, const float* c, int64_t j)
                HWY_ATTR { return hn::Add(with_c(io, s, c), io.load(to.bias + j)); });
  else
    columns([&](auto io, V s, const float* c, int64_t) HWY_ATTR { return with_c(io, s, c); });
}

template <int K>
void outer_of(int64_t m, int64_t n, const float* a, int64_t ai, int64_t ap, const float* b,
              int64_t ldb, TileOut to) {
  constexpr int kRows = K <= 2 ? 4 : 2;
  int64_t i = 0;
  for (; i + kRows <= m; i += kRows, to.c += kRows * to.ldc) {
    outer_rows<K, kRows>(n, a + i * ai, ai, ap, b, ldb, to);
  }
  for (; i < m; ++i, to.c += to.ldc) outer_rows<K, 1>(n, a + i * ai, ai, ap, b, ldb, to);
}

inline void outer(int64_t m, int64_t n, int64_t k, const float* a, int64_t ai, int64_t ap,
                  const float* b, int64_t ldb, const TileOut& to) {
  switch (k) {
    case 1:
      return outer_of<1>(m, n, a, ai, ap, b, ldb, to);
    case 2:
      return outer_of<2>(m, n, a, ai, ap, b, ldb, to);
    case 3:
      return outer_of<3>(m, n, a, ai, ap, b, ldb, to);
    default:
      return outer_of<4>(m, n, a, ai, ap, b, ldb, to);
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
