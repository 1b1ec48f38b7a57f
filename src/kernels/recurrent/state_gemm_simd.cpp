// GEMMs with packed weights, a group of units at a time. A group is a whole number of panels
// [k][columns]; its columns are ordered by gate, then unit. Panels of two vectors serve the tile
// kernels; for one to three rows they are as wide as the flat kernels, so that memory is read in
// its order.
#include <algorithm>
#include <numeric>

#include "kernels/common/targets.hpp"
#include "kernels/gemm/gemm_blocks.hpp"
#include "kernels/gemm/gemm_simd.hpp"
#include "kernels/recurrent/state_gemm.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/recurrent/state_gemm_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// after highway.h
#include "kernels/common/loops-inl.hpp"
#include "kernels/gemm/gemm_pack-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace onnxtrain::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// One vector of columns, `n` of them real: out[p * ld_out + j] = column j at p.
void pack_columns(bool trans, int64_t k, int64_t n, const float* HWY_RESTRICT b, int64_t ld,
                  float* HWY_RESTRICT out, int64_t ld_out) {
  const hn::ScalableTag<float> d;
  const int64_t lanes = int64_t(hn::Lanes(d));
  if (n <= 0) {
    for (int64_t p = 0; p < k; ++p) hn::StoreU(hn::Zero(d), d, out + p * ld_out);
    return;
  }
  if (!trans) {
    const PartIo part(n);
    for (int64_t p = 0; p < k; ++p)
      hn::StoreU(n >= lanes ? hn::LoadU(d, b + p * ld) : part.load(b + p * ld), d,
                 out + p * ld_out);
    return;
  }
  int64_t p = 0;
  for (; n >= lanes && p + 4 <= k; p += 4) {
    auto r0 = pack::load_blocks(d, b + p, ld);
    auto r1 = pack::load_blocks(d, b + ld + p, ld);
    auto r2 = pack::load_blocks(d, b + 2 * ld + p, ld);
    auto r3 = pack::load_blocks(d, b + 3 * ld + p, ld);
    pack::transpose4(d, r0, r1, r2, r3);
    float* o = out + p * ld_out;
    hn::StoreU(r0, d, o);
    hn::StoreU(r1, d, o + ld_out);
    hn::StoreU(r2, d, o + 2 * ld_out);
    hn::StoreU(r3, d, o + 3 * ld_out);
  }
  for (; p < k; ++p)
    for (int64_t j = 0; j < lanes; ++j) out[p * ld_out + j] = j < n ? b[j * ld + p] : 0;
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxtrain::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxtrain::simd {
HWY_EXPORT(pack_columns);

StateGemm::StateGemm(int64_t rows, int64_t gates, int64_t units, int64_t k, bool trans, int64_t ld)
    : kernels_(&gemm_kernels()), gates_(gates), units_(units), k_(k), ld_(ld), trans_(trans) {
  constexpr int64_t kFlatRows = 3;
  flat_ = rows <= kFlatRows;
  const int64_t vectors = flat_ ? kernels_->wide_vectors[std::max<int64_t>(rows, 1) - 1] : 2;
  int64_t unit_vectors = vectors / std::gcd(vectors, gates);  // whole panels
  if (unit_vectors == 1) unit_vectors = 2;
  panel_ = vectors * kernels_->lanes;
  group_ = unit_vectors * kernels_->lanes;
  groups_ = (units + group_ - 1) / group_;
}

size_t StateGemm::packed_bytes() const {
  return size_t(groups_ * gates_ * group_ * k_) * sizeof(float);
}

void StateGemm::pack(const float* weights, int64_t begin, int64_t end, float* packed) const {
  const int64_t lanes = kernels_->lanes, columns = gates_ * group_;
  for (int64_t g = begin; g < end; ++g) {
    for (int64_t v = 0; v < columns; v += lanes) {
      const int64_t gate = v / group_, unit = g * group_ + v % group_;
      const int64_t column = gate * units_ + unit, n = std::min(lanes, units_ - unit);
      float* out = packed + g * columns * k_ + v / panel_ * panel_ * k_ + v % panel_;
      HWY_DYNAMIC_DISPATCH(pack_columns)
      (trans_, k_, n, weights + (n <= 0 ? 0 : trans_ ? column * ld_ : column), ld_, out, panel_);
    }
  }
}

void StateGemm::run(const float* a, int64_t lda, int64_t rows, const float* packed, int64_t group,
                    float* z, bool add) const {
  const GemmKernels& kern = *kernels_;
  const int64_t columns = gates_ * group_, tiles = (rows + kern.mr - 1) / kern.mr;
  packed += group * columns * k_;
  for (int64_t j = 0; j < columns; j += panel_, packed += panel_ * k_) {
    int64_t k0 = 0;
    do {
      const int64_t kc = flat_ ? k_ : std::min(kMaxBlockK, k_ - k0);
      const TileStore store = add || k0 > 0 ? TileStore::kAdd : TileStore::kOverwrite;
      for (int64_t t = 0; t < tiles; ++t) {
        const int64_t i = t * rows / tiles, m = (t + 1) * rows / tiles - i;
        const TileKernel kernel = flat_ ? kern.wide[0][m - 1] : kern.tile[0][m - 1][1];
        kernel(kc, a + i * lda + k0, lda, packed + k0 * panel_, panel_,
               {z + i * columns + j, columns, 1, 0, store});
      }
      k0 += kc;
    } while (k0 < k_);
  }
}

}  // namespace onnxtrain::simd
#endif
