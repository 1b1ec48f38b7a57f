// Register-tile kernels of the GEMM: 6 x 2 vectors on AVX2 (16 registers), 14 x 2 on
// AVX-512 (32 registers). Every element of C is one chain of multiply-adds in the order of k,
// whatever the tile, so results do not depend on where an element falls.
#include "kernels/gemm/gemm_simd.hpp"

#include "kernels/common/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/gemm_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// after highway.h
#include "kernels/gemm/gemm_dots-inl.hpp"
#include "kernels/gemm/gemm_pack-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace onnxtrain::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

#if HWY_TARGET <= HWY_AVX3
constexpr int kMr = 14;
constexpr int kWideVectors[kMaxWide] = {8, 8, 7, 6};
#else
constexpr int kMr = 6;
constexpr int kWideVectors[kMaxWide] = {8, 6, 4, 3};
#endif

template <int MR, int NV>
HWY_INLINE void store_tile(V (&acc)[MR][NV], const TileOut& out) {
  const D d;
  const int64_t lanes = int64_t(hn::Lanes(d));
  const V va = hn::Set(d, out.alpha);
  const V vb = hn::Set(d, out.store == TileStore::kBeta ? out.beta : 1.0f);
  auto put = [&](auto finish) HWY_ATTR {
#pragma GCC unroll 16
    for (int i = 0; i < MR; ++i) {
#pragma GCC unroll 16
      for (int j = 0; j < NV; ++j) {
        float* p = out.c + i * out.ldc + j * lanes;
        hn::StoreU(finish(hn::Mul(va, acc[i][j]), p, j), d, p);
      }
    }
  };
  const bool over = out.store == TileStore::kOverwrite;
  auto with_c = [&](V sum, const float* p)
                    HWY_ATTR { return hn::MulAdd(vb, hn::LoadU(d, p), sum); };
  if (out.bias) {
    V bias[NV];
#pragma GCC unroll 16
    for (int j = 0; j < NV; ++j) bias[j] = hn::LoadU(d, out.bias + j * lanes);
    if (over)
      put([&](V sum, const float*, int j) HWY_ATTR { return hn::Add(sum, bias[j]); });
    else
      put([&](V sum, const float* p, int j) HWY_ATTR { return hn::Add(with_c(sum, p), bias[j]); });
  } else if (over) {
    put([&](V sum, const float*, int) HWY_ATTR { return sum; });
  } else {
    put([&](V sum, const float* p, int) HWY_ATTR { return with_c(sum, p); });
  }
}

// A row of B; kPack: it is also copied to `out`, which moves on.
template <int NV, bool kPack>
HWY_INLINE void load_row(const float* HWY_RESTRICT b, [[maybe_unused]] int64_t bs, V (&row)[NV],
                         [[maybe_unused]] float* HWY_RESTRICT& out) {
  const D d;
  const int64_t lanes = int64_t(hn::Lanes(d));
#pragma GCC unroll 16
  for (int j = 0; j < NV; ++j) row[j] = hn::LoadU(d, b + j * lanes);
  if constexpr (kPack) {
    __builtin_prefetch(b + 8 * bs);
#pragma GCC unroll 16
    for (int j = 0; j < NV; ++j) hn::StoreU(row[j], d, out + j * lanes);
    out += NV * lanes;
  }
}

// kColumns: element (i,k) of A at a[i + k*as] (packed, or transposed A in place); otherwise at
// a[i*as + k], with rows addressed in groups of three to stay within the integer registers.
// kPack: the rows of B are also copied to `out`, [k][NV vectors], for the tiles below.
template <int MR, int NV, bool kColumns, bool kPack>
HWY_INLINE void tile_body(int64_t k, const float* HWY_RESTRICT a, int64_t as,
                          const float* HWY_RESTRICT b, int64_t bs, const TileOut& to,
                          [[maybe_unused]] float* HWY_RESTRICT out) {
  const D d;
  const int64_t lanes = int64_t(hn::Lanes(d));
  V acc[MR][NV];
#pragma GCC unroll 16
  for (int i = 0; i < MR; ++i) {
#pragma GCC unroll 16
    for (int j = 0; j < NV; ++j) acc[i][j] = hn::Zero(d);
    __builtin_prefetch(to.c + i * to.ldc, 1);
  }
  if constexpr (kColumns) {
#pragma GCC unroll 4
    for (int64_t p = 0; p < k; ++p) {
      V vb[NV];
      load_row<NV, kPack>(b, bs, vb, out);
#pragma GCC unroll 16
      for (int i = 0; i < MR; ++i) {
        const V va = hn::Set(d, a[i]);
#pragma GCC unroll 16
        for (int j = 0; j < NV; ++j) acc[i][j] = hn::MulAdd(va, vb[j], acc[i][j]);
      }
      a += as;
      b += bs;
    }
  } else {
    constexpr int kGroups = (MR + 2) / 3;
    const float* row[kGroups];
#pragma GCC unroll 16
    for (int g = 0; g < kGroups; ++g) row[g] = a + 3 * g * as;
    if constexpr (NV > 2) {  // few rows: they stay in registers, B goes by vector by vector
#pragma GCC unroll 2
      for (int64_t p = 0; p < k; ++p, b += bs) {
        V va[MR];
#pragma GCC unroll 16
        for (int i = 0; i < MR; ++i) va[i] = hn::Set(d, row[i / 3][(i % 3) * as + p]);
#pragma GCC unroll 16
        for (int j = 0; j < NV; ++j) {
          const V vb = hn::LoadU(d, b + j * lanes);
#pragma GCC unroll 16
          for (int i = 0; i < MR; ++i) acc[i][j] = hn::MulAdd(va[i], vb, acc[i][j]);
        }
      }
      return store_tile<MR, NV>(acc, to);
    }
#pragma GCC unroll 4
    for (int64_t p = 0; p < k; ++p) {
      V vb[NV];
      load_row<NV, kPack>(b, bs, vb, out);
#pragma GCC unroll 16
      for (int i = 0; i < MR; ++i) {
        const V va = hn::Set(d, row[i / 3][(i % 3) * as + p]);
#pragma GCC unroll 16
        for (int j = 0; j < NV; ++j) acc[i][j] = hn::MulAdd(va, vb[j], acc[i][j]);
      }
      b += bs;
    }
  }
  store_tile<MR, NV>(acc, to);
}

template <int MR, int NV, bool kColumns>
void tile(int64_t k, const float* a, int64_t as, const float* b, int64_t bs, const TileOut& out) {
  tile_body<MR, NV, kColumns, false>(k, a, as, b, bs, out, nullptr);
}

template <int MR, bool kColumns>
void tile_pack(int64_t k, const float* a, int64_t as, const float* b, int64_t bs,
               const TileOut& out, float* packed) {
  tile_body<MR, 2, kColumns, true>(k, a, as, b, bs, out, packed);
}

template <int MR>
void fill(GemmKernels& g) {
  g.tile_pack[0][MR - 1] = tile_pack<MR, false>;
  g.tile_pack[1][MR - 1] = tile_pack<MR, true>;
  g.tile[0][MR - 1][0] = tile<MR, 1, false>;
  g.tile[0][MR - 1][1] = tile<MR, 2, false>;
  g.tile[1][MR - 1][0] = tile<MR, 1, true>;
  g.tile[1][MR - 1][1] = tile<MR, 2, true>;
  if constexpr (MR <= kMaxWide) {
    g.wide[0][MR - 1] = tile<MR, kWideVectors[MR - 1], false>;
    g.wide[1][MR - 1] = tile<MR, kWideVectors[MR - 1], true>;
    g.wide_vectors[MR - 1] = kWideVectors[MR - 1];
  }
  if constexpr (MR > 1) fill<MR - 1>(g);
}

const GemmKernels* make_kernels() {
  static const GemmKernels table = [] {
    GemmKernels g{};
    g.mr = kMr;
    g.lanes = int(hn::Lanes(D()));
    g.nr = 2 * g.lanes;
    fill<kMr>(g);
    g.pack_a = pack_a;
    g.pack_b = pack_b;
    g.dots = dots;
    g.outer = outer;
    g.row_times_matrix = row_times_matrix;
    g.sum_parts = sum_parts;
    return g;
  }();
  return &table;
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxtrain::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxtrain::simd {
HWY_EXPORT(make_kernels);
const GemmKernels& gemm_kernels() {
  static const GemmKernels table = [] {
    GemmKernels g = *HWY_DYNAMIC_DISPATCH(make_kernels)();
    g.epilogue = gemm_epilogue();
    return g;
  }();
  return table;
}
}  // namespace onnxtrain::simd
#endif
