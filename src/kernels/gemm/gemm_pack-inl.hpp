// Packing of operands for the GEMM: transposed in 4x4 blocks inside the vectors.
// Included once per instruction set.
#if defined(ONNXTRAIN_GEMM_PACK_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ONNXTRAIN_GEMM_PACK_INL
#undef ONNXTRAIN_GEMM_PACK_INL
#else
#define ONNXTRAIN_GEMM_PACK_INL
#endif

#include <cstring>

#include "hwy/highway.h"
#include "kernels/common/loops-inl.hpp"
#include "kernels/gemm/gemm_simd.hpp"

HWY_BEFORE_NAMESPACE();
namespace onnxtrain::simd {
namespace HWY_NAMESPACE {
constexpr int64_t kPackStretch = 8;
namespace pack {
namespace hn = hwy::HWY_NAMESPACE;

// Block q (4 floats) of the result comes from p + 4*q*ld.
template <class D>
HWY_INLINE hn::Vec<D> load_blocks(D d, const float* p, [[maybe_unused]] int64_t ld) {
  constexpr int64_t kLanes = int64_t(hn::MaxLanes(D()));
  if constexpr (kLanes <= 4) {
    return hn::LoadU(d, p);
  } else {
    const hn::Half<D> dh;
    return hn::Combine(d, load_blocks(dh, p + kLanes / 2 * ld, ld), load_blocks(dh, p, ld));
  }
}

// Transposes 4x4 inside every 16-byte block.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void transpose4(D d, V& a, V& b, V& c, V& e) {
  const hn::Repartition<double, D> dd;
  const auto ab_lo = hn::BitCast(dd, hn::InterleaveLower(d, a, b));
  const auto ab_hi = hn::BitCast(dd, hn::InterleaveUpper(d, a, b));
  const auto ce_lo = hn::BitCast(dd, hn::InterleaveLower(d, c, e));
  const auto ce_hi = hn::BitCast(dd, hn::InterleaveUpper(d, c, e));
  a = hn::BitCast(d, hn::InterleaveLower(dd, ab_lo, ce_lo));
  b = hn::BitCast(d, hn::InterleaveUpper(dd, ab_lo, ce_lo));
  c = hn::BitCast(d, hn::InterleaveLower(dd, ab_hi, ce_hi));
  e = hn::BitCast(d, hn::InterleaveUpper(dd, ab_hi, ce_hi));
}

// out[p*ld_out + j] = in[j*ld + p] for p < k, j < n.
inline void scalar_transpose(int64_t k, int64_t n, const float* in, int64_t ld, float* out,
                             int64_t ld_out) {
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t p = 0; p < k; ++p) out[p * ld_out + j] = in[j * ld + p];
  }
}
}  // namespace pack

// One panel, columns of op(B) contiguous in k.
inline void pack_b_trans(int64_t k, int64_t n, const float* HWY_RESTRICT b, int64_t ldb,
                         float* HWY_RESTRICT out) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> d;
  const int64_t lanes = int64_t(hn::Lanes(d)), nr = 2 * lanes;
  if (n < nr) {
    for (int64_t p = 0; p < k; ++p) std::memset(out + p * nr + n, 0, size_t(nr - n) * 4);
  }
  int64_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    const float* src = b + j * ldb;
    int64_t p = 0;
    for (; p + 4 <= k; p += 4) {
      auto r0 = pack::load_blocks(d, src + p, ldb);
      auto r1 = pack::load_blocks(d, src + ldb + p, ldb);
      auto r2 = pack::load_blocks(d, src + 2 * ldb + p, ldb);
      auto r3 = pack::load_blocks(d, src + 3 * ldb + p, ldb);
      pack::transpose4(d, r0, r1, r2, r3);
      float* o = out + p * nr + j;
      hn::StoreU(r0, d, o);
      hn::StoreU(r1, d, o + nr);
      hn::StoreU(r2, d, o + 2 * nr);
      hn::StoreU(r3, d, o + 3 * nr);
    }
    if (p < k) pack::scalar_transpose(k - p, lanes, src + p, ldb, out + p * nr + j, nr);
  }
  if (j < n) pack::scalar_transpose(k, n - j, b + j * ldb, ldb, out + j, nr);
}

// Several panels of rows of B: a few rows at a time, so that memory is read nearly in its order
// and neither the lines read nor the lines written crowd one set of the cache.
inline void pack_b_rows(int64_t k, int64_t n, const float* HWY_RESTRICT b, int64_t ldb,
                        float* HWY_RESTRICT out) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> d;
  const int64_t lanes = int64_t(hn::Lanes(d)), nr = 2 * lanes;
  const int64_t whole = n / nr * nr, rest = n - whole;
  const PartIo part_lo(rest < lanes ? rest : lanes), part_hi(rest > lanes ? rest - lanes : 0);
  const int64_t hi_at = rest > lanes ? lanes : 0;  // keeps the masked address inside the row
  for (int64_t p = 0; p < k; p += kPackStretch) {
    const int64_t p1 = k - p < kPackStretch ? k : p + kPackStretch;
    int64_t j = 0;
    for (; j < whole; j += nr) {
      const float* src = b + p * ldb + j;
      float* o = out + j * k + p * nr;
      for (int64_t q = p; q < p1; ++q, src += ldb, o += nr) {
        __builtin_prefetch(src + kPackStretch * ldb);
        const auto lo = hn::LoadU(d, src);
        const auto hi = hn::LoadU(d, src + lanes);
        hn::StoreU(lo, d, o);
        hn::StoreU(hi, d, o + lanes);
      }
    }
    if (rest) {
      const float* src = b + p * ldb + j;
      float* o = out + j * k + p * nr;
      for (int64_t q = p; q < p1; ++q, src += ldb, o += nr) {
        hn::StoreU(part_lo.load(src), d, o);
        hn::StoreU(part_hi.load(src + hi_at), d, o + lanes);
      }
    }
  }
}

inline void pack_b(bool trans, int64_t k, int64_t n, const float* b, int64_t ldb, float* out) {
  const int64_t nr =
      2 * int64_t(hwy::HWY_NAMESPACE::Lanes(hwy::HWY_NAMESPACE::ScalableTag<float>()));
  if (!trans) return pack_b_rows(k, n, b, ldb, out);
  for (int64_t j = 0; j < n; j += nr) {
    pack_b_trans(k, n - j < nr ? n - j : nr, b + j * ldb, ldb, out + j * k);
  }
}

// Rows of op(A) contiguous in k; 4*G >= m.
template <int G>
void pack_a_rows(int64_t m, int64_t k, const float* HWY_RESTRICT a, int64_t lda,
                 float* HWY_RESTRICT out) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::CappedTag<float, 4> d;
  const float* row[4 * G];
  for (int64_t i = 0; i < 4 * G; ++i) row[i] = a + (i < m ? i : m - 1) * lda;
  int64_t p = 0;
  for (; p + 4 <= k; p += 4) {
#pragma GCC unroll 4
    for (int g = 0; g < G; ++g) {
      auto r0 = hn::LoadU(d, row[4 * g] + p);
      auto r1 = hn::LoadU(d, row[4 * g + 1] + p);
      auto r2 = hn::LoadU(d, row[4 * g + 2] + p);
      auto r3 = hn::LoadU(d, row[4 * g + 3] + p);
      pack::transpose4(d, r0, r1, r2, r3);
      float* o = out + p * 4 * G + 4 * g;
      hn::StoreU(r0, d, o);
      hn::StoreU(r1, d, o + 4 * G);
      hn::StoreU(r2, d, o + 8 * G);
      hn::StoreU(r3, d, o + 12 * G);
    }
  }
  if (p < k) pack::scalar_transpose(k - p, m, a + p, lda, out + p * 4 * G, 4 * G);
}

// Columns of op(A) contiguous in i: G whole vectors per k.
template <class Dc, int G>
void pack_a_columns(int64_t k, const float* HWY_RESTRICT a, int64_t lda, float* HWY_RESTRICT out) {
  namespace hn = hwy::HWY_NAMESPACE;
  const Dc d;
  const int64_t lanes = int64_t(hn::Lanes(d));
  for (int64_t p = 0; p < k; ++p, a += lda, out += G * lanes) {
    __builtin_prefetch(a + 2 * kPackStretch * lda);
#pragma GCC unroll 4
    for (int g = 0; g < G; ++g) hn::StoreU(hn::LoadU(d, a + g * lanes), d, out + g * lanes);
  }
}

// One tile, [k][packed_height(m)]; `readable` floats exist from `a` on in a transposed row.
inline void pack_a_tile(bool trans, int64_t m, int64_t readable, int64_t k, const float* a,
                        int64_t lda, float* out) {
  namespace hn = hwy::HWY_NAMESPACE;
  const int64_t height = packed_height(m);
  if (!trans) {
    switch (height / 4) {
      case 1:
        return pack_a_rows<1>(m, k, a, lda, out);
      case 2:
        return pack_a_rows<2>(m, k, a, lda, out);
      default:
        return pack_a_rows<4>(m, k, a, lda, out);
    }
  }
  if (readable < height) {
    for (int64_t p = 0; p < k; ++p, a += lda, out += height) {
      for (int64_t i = 0; i < m; ++i) out[i] = a[i];
    }
    return;
  }
  using D4 = hn::CappedTag<float, 4>;
  using D8 = hn::CappedTag<float, 8>;
  using D16 = hn::CappedTag<float, 16>;
  switch (height) {
    case 4:
      return pack_a_columns<D4, 1>(k, a, lda, out);
    case 8:
      return pack_a_columns<D8, int(8 / hn::MaxLanes(D8()))>(k, a, lda, out);
    default:
      return pack_a_columns<D16, int(16 / hn::MaxLanes(D16()))>(k, a, lda, out);
  }
}

// `rows` rows of op(A) in `tiles` tiles of nearly equal height, [k][height] each.
inline void pack_a(bool trans, int64_t rows, int64_t tiles, int64_t k, const float* a, int64_t lda,
                   float* out) {
  // A stretch of k at a time: lines shared by neighbouring tiles are still in the cache.
  const int64_t most = (rows + tiles - 1) / tiles;
  const int64_t stretch = trans ? kPackStretch : 32;
  for (int64_t p = 0; p < k; p += stretch) {
    const int64_t kc = k - p < stretch ? k - p : stretch;
    for (int64_t t = 0; t < tiles; ++t) {
      const int64_t i0 = t * rows / tiles, m = (t + 1) * rows / tiles - i0;
      pack_a_tile(trans, m, rows - i0, kc, a + (trans ? p * lda + i0 : i0 * lda + p), lda,
                  out + t * packed_height(most) * k + p * packed_height(m));
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxtrain::simd
HWY_AFTER_NAMESPACE();
#endif
