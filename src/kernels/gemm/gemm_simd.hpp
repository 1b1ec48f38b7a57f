// The processor-specific pieces that gemm.cpp composes. One table per instruction set.
#pragma once
#include <cstdint>

#include "kernels/gemm/gemm.hpp"

namespace onnxtrain::simd {

// How a tile kernel combines its sums with what is in C.
enum class TileStore { kOverwrite, kAdd, kBeta };

// Where the sums of a tile go: C = alpha * sums (+ beta * C) (+ bias per column).
struct TileOut {
  float* c;
  int64_t ldc;
  float alpha, beta;
  TileStore store;
  const float* bias = nullptr;
};

// [mr, nv*lanes] sums of A*B. A element (i,k): a[i*as + k] or a[i + k*as]; B row k: b + k*bs, whole
// vectors readable.
using TileKernel = void (*)(int64_t k, const float* a, int64_t as, const float* b, int64_t bs,
                            const TileOut& out);

// The same for a whole tile that reads B in place and packs it into `packed` on the way.
using PackingKernel = void (*)(int64_t k, const float* a, int64_t as, const float* b, int64_t bs,
                               const TileOut& out, float* packed);

// Everything the epilogue of one tile needs; pointers are at the tile's first element.
struct TileEpilogue {
  Activation act = Activation::kNone;
  Activation grad = Activation::kNone;
  const float* bias_col = nullptr;
  const float* bias_row = nullptr;
  const float* residual = nullptr;
  int64_t ld_residual = 0;
  float* pre = nullptr;
  int64_t ld_pre = 0;
  const float* saved = nullptr;
  int64_t ld_saved = 0;
};

constexpr int kMaxMr = 14;
// Rows of a packed tile are padded so that they can be copied with whole vectors.
constexpr int64_t packed_height(int64_t rows) { return rows <= 4 ? 4 : rows <= 8 ? 8 : 16; }
constexpr int kMaxWide = 4;   // rows of the kernels for very flat GEMMs
constexpr int kMaxOuter = 4;  // multiplications per element in the kernel for outer products

struct GemmKernels {
  int mr;     // rows of the full tile
  int lanes;  // floats per vector
  int nr;     // columns of the full tile: 2 vectors
  // [rows of A contiguous in i? 1 : 0][rows-1][vectors-1]
  TileKernel tile[2][kMaxMr][2];
  PackingKernel tile_pack[2][kMaxMr];
  // Flat GEMMs (few rows of A, B read in place): [.][rows-1], wide_vectors[rows-1] vectors
  TileKernel wide[2][kMaxWide];
  int wide_vectors[kMaxWide];

  // Packs `k` rows of op(B), `n` columns, into panels [k][nr], the last one zero padded.
  // trans: column j of op(B) is b + j*ldb, contiguous in k.
  void (*pack_b)(bool trans, int64_t k, int64_t n, const float* b, int64_t ldb, float* out);
  // Packs `rows` rows of op(A) as `tiles` tiles; tile t has rows [t*rows/tiles,
  // (t+1)*rows/tiles), [k][packed_height(its rows)], and starts at
  // t * packed_height(rows of the highest) * k. trans: row i of op(A) is a + i, stride lda in k.
  void (*pack_a)(bool trans, int64_t rows, int64_t tiles, int64_t k, const float* a, int64_t lda,
                 float* out);
  // c[m, n] = epilogue(c)
  void (*epilogue)(int64_t m, int64_t n, float* c, int64_t ldc, const TileEpilogue& e);
  // A * B^T [m,n] by dot products; m <= kMaxWide, both contiguous along k. Element (i,j) goes to
  // c[i*ldc + j*step]; the bias is per i.
  void (*dots)(int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b,
               int64_t ldb, const TileOut& out, int64_t step);
  // A * B [m,n] for k of 1 to kMaxOuter; element (i,p) of A at a[i*ai + p*ap].
  void (*outer)(int64_t m, int64_t n, int64_t k, const float* a, int64_t ai, int64_t ap,
                const float* b, int64_t ldb, const TileOut& out);
  // sum[n] = a (k elements, as apart) times B; sum is padded to whole vectors and overwritten.
  void (*row_times_matrix)(int64_t n, int64_t k, const float* a, int64_t as, const float* b,
                           int64_t ldb, float* sum);
  // c[m,n] = sum over s of parts[s*part_stride + ...] (+ beta*c), parts have rows of n.
  void (*sum_parts)(int64_t m, int64_t n, int parts, const float* part, int64_t part_stride,
                    int64_t ld_part, float* c, int64_t ldc, float beta, TileStore store);
};

const GemmKernels& gemm_kernels();
using EpilogueKernel = void (*)(int64_t, int64_t, float*, int64_t, const TileEpilogue&);
EpilogueKernel gemm_epilogue();

}  // namespace onnxtrain::simd
