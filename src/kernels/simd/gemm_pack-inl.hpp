// Packing of operands for the matrix product: transposed in 4x4 blocks inside the vectors.
// Included once per instruction set.
#if defined(ONNXTRAIN_GEMM_PACK_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ONNXTRAIN_GEMM_PACK_INL
#undef ONNXTRAIN_GEMM_PACK_INL
#else
#define ONNXTRAIN_GEMM_PACK_INL
#endif

#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace onnxtrain::simd {
namespace HWY_NAMESPACE {
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

inline void pack_b(bool trans, int64_t k, int64_t n, const float* HWY_RESTRICT b, int64_t ldb,
                   float* HWY_RESTRICT out) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<float> d;
  const int64_t lanes = int64_t(hn::Lanes(d)), nr = 2 * lanes;
  if (!trans) {
    if (n == nr) {
      for (int64_t p = 0; p < k; ++p, b += ldb, out += nr) {
        const auto lo = hn::LoadU(d, b);
        const auto hi = hn::LoadU(d, b + lanes);
        hn::StoreU(lo, d, out);
        hn::StoreU(hi, d, out + lanes);
      }
    } else {
      const auto m_lo = hn::FirstN(d, size_t(n));
      const auto m_hi = hn::FirstN(d, size_t(n > lanes ? n - lanes : 0));
      const int64_t hi_at = n > lanes ? lanes : 0;  // keeps the masked address inside the row
      for (int64_t p = 0; p < k; ++p, b += ldb, out += nr) {
        hn::StoreU(hn::MaskedLoad(m_lo, d, b), d, out);
        hn::StoreU(hn::MaskedLoad(m_hi, d, b + hi_at), d, out + lanes);
      }
    }
    return;
  }
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

// Writes up to 3 floats past the last row: the caller's buffer has that slack.
inline void pack_a(bool trans, int64_t m, int64_t k, const float* HWY_RESTRICT a, int64_t lda,
                   float* HWY_RESTRICT out) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::CappedTag<float, 4> d;
  if (trans) {
    if (m >= 4) {
      for (int64_t p = 0; p < k; ++p, a += lda, out += m) {
        int64_t i = 0;
        for (; i + 4 <= m; i += 4) hn::StoreU(hn::LoadU(d, a + i), d, out + i);
        if (i < m) hn::StoreU(hn::LoadU(d, a + m - 4), d, out + m - 4);
      }
    } else {
      for (int64_t p = 0; p < k; ++p, a += lda, out += m) {
        for (int64_t i = 0; i < m; ++i) out[i] = a[i];
      }
    }
    return;
  }
  int64_t p = 0;
  const float* row[16];
  const int64_t groups = (m + 3) / 4;
  for (int64_t i = 0; i < 4 * groups; ++i) row[i] = a + (i < m ? i : m - 1) * lda;
  for (; p + 4 <= k; p += 4) {
    hn::Vec<decltype(d)> r[16];
    for (int64_t g = 0; g < groups; ++g) {
      for (int64_t i = 4 * g; i < 4 * g + 4; ++i) r[i] = hn::LoadU(d, row[i] + p);
      pack::transpose4(d, r[4 * g], r[4 * g + 1], r[4 * g + 2], r[4 * g + 3]);
    }
    // In the order of memory: the spill over a row's end is overwritten by the next row.
    for (int64_t q = 0; q < 4; ++q) {
      for (int64_t g = 0; g < groups; ++g) hn::StoreU(r[4 * g + q], d, out + (p + q) * m + 4 * g);
    }
  }
  if (p < k) pack::scalar_transpose(k - p, m, a + p, lda, out + p * m, m);
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxtrain::simd
HWY_AFTER_NAMESPACE();
#endif
