// Running a planned GEMM: loops over tasks, k blocks, column panels and row tiles.
#include "kernels/gemm/gemm.hpp"

#include <algorithm>
#include <memory>

#include "core/error.hpp"
#include "kernels/gemm/gemm_blocks.hpp"
#include "kernels/gemm/gemm_simd.hpp"

namespace onnxtrain::simd {
namespace {

// Packed operands of the task a thread is working on. Not on the stack: callers' stacks may be
// small.
struct alignas(64) Scratch {
  float b[kMaxBlockK * kMaxNr];
  float a[kScratchA];
};
thread_local Scratch scratch;
constexpr int64_t kStrip = 2048;  // columns of a long row kept in the first-level cache

TileStore first_store(float beta) {
  return beta == 0 ? TileStore::kOverwrite : beta == 1 ? TileStore::kAdd : TileStore::kBeta;
}

// A tile at the right edge was computed whole in `tile` (rows of nr); only n columns exist.
void merge_edge(int64_t m, int64_t n, const float* tile, int64_t nr, float* c, int64_t ldc,
                float beta, TileStore store) {
  for (int64_t i = 0; i < m; ++i, tile += nr, c += ldc) {
    for (int64_t j = 0; j < n; ++j) {
      c[j] = store == TileStore::kOverwrite ? tile[j]
             : store == TileStore::kAdd     ? c[j] + tile[j]
                                            : beta * c[j] + tile[j];
    }
  }
}

// Few columns: A is read once, in place; its rows times the columns of B, contiguous along k, which
// stay in the first-level cache.
void dot_columns(const GemmDesc& d, const GemmKernels& kern, const GemmArgs& g, const float* bias,
                 int64_t m0, int64_t m1) {
  for (int64_t k0 = 0; k0 < d.k; k0 += kNarrowK) {
    const int64_t k = std::min(kNarrowK, d.k - k0);
    const float* b = g.b + k0;
    int64_t ldb = d.ldb;
    if (!d.trans_b) {
      for (int64_t p = 0; p < k; ++p)
        for (int64_t j = 0; j < d.n; ++j) scratch.b[j * k + p] = g.b[(k0 + p) * d.ldb + j];
      b = scratch.b;
      ldb = k;
    }
    const TileStore store = k0 == 0 ? first_store(d.beta) : TileStore::kAdd;
    const bool last = k0 + k == d.k;
    kern.dots(d.n, m1 - m0, k, b, ldb, g.a + m0 * d.lda + k0, d.lda,
              {g.c + m0 * d.ldc, 1, d.alpha, d.beta, store, last ? bias : nullptr}, d.ldc);
  }
}

// Few multiplications per element: C is written once, in the order of memory.
void outer_rows(const GemmDesc& d, const GemmKernels& kern, const GemmArgs& g, const float* bias,
                int64_t m0, int64_t m1) {
  const float* b = g.b;
  int64_t ldb = d.ldb;
  if (d.trans_b) {
    for (int64_t j = 0; j < d.n; ++j)
      for (int64_t p = 0; p < d.k; ++p) scratch.a[p * d.n + j] = g.b[j * d.ldb + p];
    b = scratch.a;
    ldb = d.n;
  }
  const int64_t ai = d.trans_a ? 1 : d.lda, ap = d.trans_a ? d.lda : 1;
  kern.outer(m1 - m0, d.n, d.k, g.a + m0 * ai, ai, ap, b, ldb,
             {g.c + m0 * d.ldc, d.ldc, d.alpha, d.beta, first_store(d.beta), bias});
}

}  // namespace

GemmArgs GemmPlan::item(const GemmArgs& g, int64_t i) const {
  GemmArgs r = g;
  r.a += d_.offsets_a ? d_.offsets_a[i] : i * d_.stride_a;
  r.b += d_.offsets_b ? d_.offsets_b[i] : i * d_.stride_b;
  const int64_t c = d_.offsets_c ? d_.offsets_c[i] : i * d_.stride_c;
  r.c += c;
  if (r.residual) r.residual += c;
  if (r.pre) r.pre += c;
  if (r.saved) r.saved += c;
  return r;
}

void GemmPlan::finish(const GemmArgs& g, int64_t m0, int64_t m, int64_t n0, int64_t n) const {
  TileEpilogue e;
  e.act = d_.act;
  e.grad = d_.grad;
  if (d_.bias == BiasAxis::kColumn) e.bias_col = g.bias + n0;
  if (d_.bias == BiasAxis::kRow) e.bias_row = g.bias + m0;
  if (d_.residual) {
    e.residual = g.residual + m0 * d_.ld_residual + n0;
    e.ld_residual = d_.ld_residual;
  }
  if (d_.store_pre) {
    e.pre = g.pre + m0 * d_.ld_pre + n0;
    e.ld_pre = d_.ld_pre;
  }
  if (d_.grad != Activation::kNone) {
    e.saved = g.saved + m0 * d_.ld_saved + n0;
    e.ld_saved = d_.ld_saved;
  }
  kernels_->epilogue(m, n, g.c + m0 * d_.ldc + n0, d_.ldc, e);
}

// What the epilogue of a tile will touch, while its sums are computed.
void GemmPlan::prefetch_epilogue(const GemmArgs& g, int64_t m0, int64_t m, int64_t n0) const {
  for (int64_t i = m0; i < m0 + m; ++i) {
    if (d_.residual) __builtin_prefetch(g.residual + i * d_.ld_residual + n0);
    if (d_.store_pre) __builtin_prefetch(g.pre + i * d_.ld_pre + n0, 1);
    if (d_.grad != Activation::kNone) __builtin_prefetch(g.saved + i * d_.ld_saved + n0);
  }
}

void GemmPlan::run_block(const GemmArgs& g, const float* packed, const Block& b) const {
  const GemmKernels& kern = *kernels_;
  const int64_t lanes = kern.lanes, nr = kern.nr, rows = b.m1 - b.m0;
  const int64_t tiles = (rows + kern.mr - 1) / kern.mr;
  const int64_t n_padded = (d_.n + nr - 1) / nr * nr;
  const int64_t tile_size = packed_height((rows + tiles - 1) / tiles);
  Scratch& s = scratch;
  alignas(64) float edge[kMaxMr * kMaxNr];

  int64_t k0 = b.k0;
  do {  // at least once: k = 0 still has an epilogue
    const int64_t kc = std::min(block_k_, b.k1 - k0);
    const bool first = k0 == b.k0, last = k0 + kc >= b.k1;
    const TileStore store = !first     ? TileStore::kAdd
                            : b.finish ? first_store(d_.beta)
                                       : TileStore::kOverwrite;
    const float* a = g.a + (d_.trans_a ? k0 * d_.lda + b.m0 : b.m0 * d_.lda + k0);
    const int64_t step = d_.trans_a ? 1 : d_.lda;  // from row to row of op(A)
    if (pack_a_) kern.pack_a(d_.trans_a, rows, tiles, kc, a, d_.lda, s.a);
    const bool columns = pack_a_ || d_.trans_a;
    const auto& kernels = kern.tile[columns];
    for (int64_t j = b.n0; j < b.n1; j += nr) {
      const int64_t nc = std::min(nr, b.n1 - j), nv = nc > lanes ? 2 : 1;
      const bool whole = nc == nv * lanes;
      const float* bp = s.b;
      int64_t bs = nr;
      bool pack_on_the_way = false;
      if (packed) {
        bp = packed + k0 * n_padded + j * kc;
      } else if (direct_b_ && whole) {
        bp = g.b + k0 * d_.ldb + j;
        bs = d_.ldb;
      } else if (!d_.trans_b && nc == nr) {
        pack_on_the_way = true;
      } else {
        const float* src = g.b + (d_.trans_b ? j * d_.ldb + k0 : k0 * d_.ldb + j);
        kern.pack_b(d_.trans_b, kc, nc, src, d_.ldb, s.b);
      }
      for (int64_t t = 0; t < tiles; ++t) {
        const int64_t i0 = t * rows / tiles, m = (t + 1) * rows / tiles - i0;
        const float* ap = pack_a_ ? s.a + t * tile_size * kc : a + i0 * step;
        const int64_t as = pack_a_ ? packed_height(m) : d_.lda;
        TileOut out{b.c + (b.m0 + i0) * b.ldc + j, b.ldc, d_.alpha, d_.beta, store};
        bool finished = !(last && b.finish && has_epilogue_);
        if (!finished && only_bias_ && whole) {
          out.bias = g.bias + j;
          finished = true;
        }
        if (!finished) prefetch_epilogue(g, b.m0 + i0, m, j);
        if (pack_on_the_way && t == 0) {
          kern.tile_pack[columns][m - 1](kc, ap, as, g.b + k0 * d_.ldb + j, d_.ldb, out, s.b);
        } else if (whole) {
          kernels[m - 1][nv - 1](kc, ap, as, bp, bs, out);
        } else {
          kernels[m - 1][nv - 1](kc, ap, as, bp, bs,
                                 {edge, nr, d_.alpha, 0, TileStore::kOverwrite});
          merge_edge(m, nc, edge, nr, out.c, b.ldc, d_.beta, store);
        }
        if (!finished) finish(g, b.m0 + i0, m, j, nc);
      }
    }
    k0 += kc;
  } while (k0 < b.k1);
}

// Few rows: B is read once, in place, in wide strips.
void GemmPlan::run_flat(const GemmArgs& g, int64_t n0, int64_t n1) const {
  const GemmKernels& kern = *kernels_;
  const int64_t lanes = kern.lanes, m = d_.m;
  const int64_t wide = kern.wide_vectors[m - 1] * lanes;
  const TileStore store = first_store(d_.beta);
  int64_t j = n0;
  if (m == 1 && d_.k >= 64 && n1 - n0 >= 4 * kMaxNr) {  // a long row: memory order counts most
    for (; j < n1; j += kStrip) {
      const int64_t n = std::min(kStrip, n1 - j);
      kern.row_times_matrix(n, d_.k, g.a, d_.trans_a ? d_.lda : 1, g.b + j, d_.ldb, scratch.a);
      for (int64_t i = 0; i < n; ++i) scratch.a[i] *= d_.alpha;
      merge_edge(1, n, scratch.a, n, g.c + j, d_.ldc, d_.beta, store);
    }
  }
  for (; j + wide <= n1; j += wide) {
    kern.wide[d_.trans_a][m - 1](d_.k, g.a, d_.lda, g.b + j, d_.ldb,
                                 {g.c + j, d_.ldc, d_.alpha, d_.beta, store});
  }
  for (int64_t nv = 2; nv >= 1; --nv) {
    for (; j + nv * lanes <= n1; j += nv * lanes) {
      kern.tile[d_.trans_a][m - 1][nv - 1](d_.k, g.a, d_.lda, g.b + j, d_.ldb,
                                           {g.c + j, d_.ldc, d_.alpha, d_.beta, store});
    }
  }
  if (j < n1) {
    Block rest{0, m, j, n1, 0, d_.k, g.c, d_.ldc, false};
    alignas(64) float edge[kMaxWide * kMaxNr];
    rest.c = edge - j;
    rest.ldc = kMaxNr;
    run_block(g, nullptr, rest);
    merge_edge(m, n1 - j, edge, kMaxNr, g.c + j, d_.ldc, d_.beta, store);
  }
  if (has_epilogue_) finish(g, 0, m, n0, n1 - n0);
}

void GemmPlan::run_item(const GemmArgs& g, const float* packed, int64_t block) const {
  const int64_t bm = block / blocks_n_, bn = block % blocks_n_;
  const int64_t unit = path_ == Path::kTiles ? kernels_->nr : path_ == Path::kFlat ? 16 : 1;
  const int64_t panels = (d_.n + unit - 1) / unit;
  const int64_t n0 = bn * panels / blocks_n_ * unit;
  const int64_t n1 = std::min(d_.n, (bn + 1) * panels / blocks_n_ * unit);
  if (d_.m > kMaxWide && (path_ == Path::kFlat || path_ == Path::kDots)) {
    const float* bias = only_bias_ ? g.bias : nullptr;
    const bool more = has_epilogue_ && !only_bias_;
    // rows that are still in the cache when their epilogue comes
    const int64_t m0 = bm * d_.m / blocks_m_, m1 = (bm + 1) * d_.m / blocks_m_;
    const int64_t rows = more && path_ == Path::kFlat ? std::max<int64_t>(8, 4096 / d_.n) : m1 - m0;
    for (int64_t i = m0; i < m1; i += rows) {
      const int64_t end = std::min(m1, i + rows);
      (path_ == Path::kFlat ? outer_rows : dot_columns)(d_, *kernels_, g, bias, i, end);
      if (more) finish(g, i, end - i, 0, d_.n);
    }
    return;
  }
  switch (path_) {
    case Path::kFlat:
      return run_flat(g, n0, n1);
    case Path::kDots:
      kernels_->dots(d_.m, n1 - n0, d_.k, g.a, d_.lda, g.b + n0 * d_.ldb, d_.ldb,
                     {g.c + n0, d_.ldc, d_.alpha, d_.beta, first_store(d_.beta)}, 1);
      if (has_epilogue_) finish(g, 0, d_.m, n0, n1 - n0);
      return;
    default: {
      const int64_t tiles = (d_.m + kernels_->mr - 1) / kernels_->mr;
      const int64_t t0 = bm * tiles / blocks_m_, t1 = (bm + 1) * tiles / blocks_m_;
      run_block(g, packed,
                {t0 * d_.m / tiles, t1 * d_.m / tiles, n0, n1, 0, d_.k, g.c, d_.ldc, true});
    }
  }
}

void GemmPlan::run_split(ThreadPool& pool, const GemmArgs& g) const {
  float* parts = static_cast<float*>(g.workspace);
  const int64_t size = d_.m * d_.n;
  pool.run(splits_, [&](int64_t s) {
    const int64_t k1 = std::min(d_.k, (s + 1) * split_k_);
    run_block(g, nullptr, {0, d_.m, 0, d_.n, s * split_k_, k1, parts + s * size, d_.n, false});
  });
  const int64_t grain = std::max<int64_t>(1, 16384 / (d_.n * splits_));
  parallel_for(pool, d_.m, grain, [&](int64_t m0, int64_t m1) {
    kernels_->sum_parts(m1 - m0, d_.n, int(splits_), parts + m0 * d_.n, size, d_.n,
                        g.c + m0 * d_.ldc, d_.ldc, d_.beta, first_store(d_.beta));
    if (has_epilogue_) finish(g, m0, m1 - m0, 0, d_.n);
  });
}

void GemmPlan::run(ThreadPool& pool, const GemmArgs& args) const {
  if (path_ == Path::kEmpty) return;
  GemmArgs g = args;
  if (swapped_) std::swap(g.a, g.b);
  if (path_ == Path::kSplitK) return run_split(pool, g);
  const float* packed = d_.packed_b ? g.b : nullptr;
  if (shared_pack_) {
    packed = static_cast<const float*>(g.workspace);
    pack_b(pool, g.b, static_cast<float*>(g.workspace));
  }
  const int64_t blocks = blocks_m_ * blocks_n_;
  if (d_.batch == 1) {
    if (blocks == 1) return run_item(g, packed, 0);
    return pool.run(blocks, [&](int64_t t) { run_item(g, packed, t); });
  }
  if (blocks > 1) {
    pool.run(d_.batch * blocks,
             [&](int64_t t) { run_item(item(g, t / blocks), nullptr, t % blocks); });
    return;
  }
  parallel_for(pool, d_.batch, items_per_task_, [&](int64_t i0, int64_t i1) {
    for (int64_t i = i0; i < i1; ++i) run_item(item(g, i), nullptr, 0);
  });
}

size_t GemmPlan::packed_b_bytes() const {
  const int64_t nr = kernels_->nr;
  return size_t((d_.n + nr - 1) / nr * nr * d_.k) * sizeof(float);
}

// Layout: k blocks; in each, panels of nr columns; in each, [k][nr].
void GemmPlan::pack_b(ThreadPool& pool, const float* b, float* packed) const {
  const int64_t nr = kernels_->nr, panels = (d_.n + nr - 1) / nr;
  const int64_t grain = std::max<int64_t>(kGroupN / nr, 65536 / (nr * std::max<int64_t>(d_.k, 1)));
  parallel_for(pool, panels, grain, [&](int64_t p0, int64_t p1) {
    const int64_t j = p0 * nr, columns = std::min(p1 * nr, d_.n) - j;
    for (int64_t k0 = 0; k0 < d_.k; k0 += block_k_) {
      kernels_->pack_b(d_.trans_b, std::min(block_k_, d_.k - k0), columns,
                       b + (d_.trans_b ? j * d_.ldb + k0 : k0 * d_.ldb + j), d_.ldb,
                       packed + k0 * panels * nr + j * std::min(block_k_, d_.k - k0));
    }
  });
}

}  // namespace onnxtrain::simd
