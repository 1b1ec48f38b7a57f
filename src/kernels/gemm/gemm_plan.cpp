// Choosing how to compute a GEMM: path, blocks, packing. A function of the problem and
// the instruction set only, so that results never depend on the number of threads.
#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "kernels/gemm/gemm.hpp"
#include "kernels/gemm/gemm_blocks.hpp"
#include "kernels/gemm/gemm_simd.hpp"

namespace onnxtrain::simd {
namespace {

constexpr int64_t kTaskWork = 1 << 18;  // multiply-adds worth a task: about 5 microseconds
constexpr int64_t kMaxTasks = 48;       // enough to balance many threads

// More tasks for more work, but larger ones too: each packs its own operands.
int64_t tasks_for(double work) {
  return int64_t(std::clamp(std::sqrt(work / kTaskWork), 1.0, double(kMaxTasks)));
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Many rows, but few columns or few multiplications per element: they would leave the tiles'
// registers empty, and are bound by reading A or writing C.
bool thin(const GemmDesc& d, int64_t lanes) {
  if (d.packed_b || d.m <= kMaxWide || d.k == 0) return false;
  if (d.k <= kMaxOuter) return d.n >= lanes && d.n * d.k <= kScratchA;
  return d.n <= kMaxWide && !d.trans_a && d.k >= lanes;
}

}  // namespace

GemmPlan GemmPlan::make(const GemmDesc& desc) {
  GemmPlan p;
  p.d_ = desc;
  p.kernels_ = &gemm_kernels();
  p.normalise();
  p.choose_path();
  return p;
}

void GemmPlan::normalise() {
  GemmDesc& d = d_;
  OT_ASSERT(d.m >= 0 && d.n >= 0 && d.k >= 0 && d.batch >= 0);
  OT_ASSERT(!d.packed_b || d.batch == 1);
  if (d.lda == 0) d.lda = d.trans_a ? d.m : d.k;
  if (d.ldb == 0) d.ldb = d.trans_b ? d.k : d.n;
  if (d.ldc == 0) d.ldc = d.n;
  if (d.ld_residual == 0) d.ld_residual = d.ldc;
  if (d.ld_pre == 0) d.ld_pre = d.ldc;
  if (d.ld_saved == 0) d.ld_saved = d.ldc;
  has_epilogue_ = d.bias != BiasAxis::kNone || d.residual || d.store_pre ||
                  d.act != Activation::kNone || d.grad != Activation::kNone;
  // A contiguous column of results is a row of the transposed GEMM.
  if (d.n == 1 && d.m > 1 && !d.packed_b && d.ldc == 1 && d.ld_residual == 1 && d.ld_pre == 1 &&
      d.ld_saved == 1) {
    swapped_ = true;
    std::swap(d.m, d.n);
    std::swap(d.lda, d.ldb);
    std::swap(d.trans_a, d.trans_b);
    d.trans_a = !d.trans_a;
    d.trans_b = !d.trans_b;
    std::swap(d.stride_a, d.stride_b);
    std::swap(d.offsets_a, d.offsets_b);
    d.ldc = d.ld_residual = d.ld_pre = d.ld_saved = d.n;
    if (d.bias != BiasAxis::kNone) {
      d.bias = d.bias == BiasAxis::kRow ? BiasAxis::kColumn : BiasAxis::kRow;
    }
  }
  only_bias_ = d.bias == BiasAxis::kColumn && !d.residual && !d.store_pre &&
               d.act == Activation::kNone && d.grad == Activation::kNone;
  if (d.m == 1 && d.trans_a && d.lda == 1) {  // a contiguous row either way
    d.trans_a = false;
    d.lda = d.k;
  }
  if (d.n == 1 && !d.packed_b && !d.trans_b && d.ldb == 1) {
    d.trans_b = true;
    d.ldb = d.k;
  }
}

void GemmPlan::choose_path() {
  const GemmDesc& d = d_;
  if (d.m == 0 || d.n == 0 || d.batch == 0) return;
  const int64_t blocks_k = std::max<int64_t>(1, ceil_div(d.k, kMaxBlockK));
  block_k_ = std::max<int64_t>(4, ceil_div(ceil_div(d.k, blocks_k), 4) * 4);

  const double work = double(d.m) * double(d.n) * double(d.k);
  int64_t tasks = tasks_for(work);
  if (d.batch > 1) {
    tasks = std::min(tasks, ceil_div(kMaxTasks, d.batch));
    if (tasks == 1) items_per_task_ = std::max<int64_t>(1, int64_t(kTaskWork / (work + 1)));
  }
  const bool flat = d.m <= kMaxWide && !d.packed_b;
  if (flat && !(d.trans_b && d.trans_a)) {
    // Bound by reading B: strips of at least 32K elements.
    path_ = d.trans_b ? Path::kDots : Path::kFlat;
    const int64_t unit = d.trans_b ? 8 : d.m == 1 ? 512 : 4 * kernels_->nr;
    blocks_n_ = std::clamp<int64_t>(int64_t(double(d.n) * double(d.k) / 32768), 1,
                                    std::min(kMaxTasks, ceil_div(d.n, unit)));
    return;
  }
  if (thin(d, kernels_->lanes)) {  // by rows of A
    const bool outer = d.k <= kMaxOuter;
    path_ = outer ? Path::kFlat : Path::kDots;
    const int64_t touched = d.m * (outer ? d.n : d.k);
    blocks_m_ = std::clamp<int64_t>(touched / 32768, 1, std::min(kMaxTasks, ceil_div(d.m, 8)));
    return;
  }
  path_ = Path::kTiles;
  choose_blocks(tasks);
}

void GemmPlan::choose_blocks(int64_t tasks) {
  const GemmDesc& d = d_;
  const GemmKernels& kern = *kernels_;
  const int64_t tiles = ceil_div(d.m, kern.mr), panels = ceil_div(d.n, kern.nr);
  const int64_t tiles_most = kMaxBlockM / kern.mr;
  shared_pack_ = !d.packed_b && d.batch == 1 && tiles > tiles_most;

  // Costs of packing one element, in multiply-adds of the tile kernel.
  const double pack_b_cost = d.packed_b || shared_pack_ ? 2 : d.trans_b ? 6 : 2;
  const double pack_a_cost = d.trans_a ? 8 : 1;
  double best = 1e30, overhead = 0;
  for (int64_t bm = ceil_div(tiles, tiles_most); bm <= tiles; ++bm) {
    const int64_t bn = std::min(panels, ceil_div(tasks, bm));
    const double rows = double(ceil_div(tiles, bm) * kern.mr);
    const double cols = double(ceil_div(panels, bn) * kern.nr);
    const double lost = pack_b_cost / rows + pack_a_cost / cols;
    const double few = double(tasks) / double(std::min(tasks, bm * bn));  // threads without work
    const double uneven = double(ceil_div(tiles, bm) * bm) / double(tiles) *
                          double(ceil_div(panels, bn) * bn) / double(panels);
    const double cost = (1 + lost) * few * (0.8 + 0.2 * uneven);
    if (cost < best) {
      best = cost;
      overhead = lost + (few - 1);
      blocks_m_ = bm;
      blocks_n_ = bn;
    }
    if (bm >= 4 * tasks) break;
  }
  if (!d.packed_b && d.batch == 1 && d.m <= kMaxBlockM) choose_split(tasks, overhead);

  const int64_t block_panels = path_ == Path::kSplitK ? panels : ceil_div(panels, blocks_n_);
  const int64_t block_tiles = path_ == Path::kSplitK ? tiles : ceil_div(tiles, blocks_m_);
  direct_b_ = !d.trans_b && (block_tiles <= 2 || d.k * d.n <= 4096);
  // Rows of A are read in place unless more of them than the cache has ways share a set.
  pack_a_ = d.trans_a ? block_panels >= 2 && d.k >= 16
                      : kern.mr > 8 && block_panels >= 4 && d.lda % 1024 == 0;
  if (shared_pack_) workspace_ = packed_b_bytes();
}

// Small result, long k: several tasks along k, their results added in order.
void GemmPlan::choose_split(int64_t tasks, double overhead) {
  const GemmDesc& d = d_;
  const int64_t most = std::min(tasks, d.k / 256);
  if (most < 2) return;
  const double cost =
      (d.trans_b ? 6.0 : 3.0) / double(d.m) + 4.0 / double(d.n) + 8.0 * double(most) / double(d.k);
  if (cost + 0.03 > overhead) return;
  path_ = Path::kSplitK;
  split_k_ = ceil_div(d.k, most);
  if (split_k_ > kMaxBlockK) {
    const int64_t blocks = ceil_div(split_k_, kMaxBlockK);
    block_k_ = ceil_div(ceil_div(split_k_, blocks), 4) * 4;
    split_k_ = blocks * block_k_;
  } else {
    block_k_ = split_k_ = ceil_div(split_k_, 4) * 4;
  }
  splits_ = ceil_div(d.k, split_k_);
  shared_pack_ = false;
  workspace_ = size_t(splits_ * d.m * d.n) * sizeof(float);
}

}  // namespace onnxtrain::simd
