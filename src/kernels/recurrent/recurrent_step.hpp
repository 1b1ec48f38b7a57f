// What the recurrent forward and backward passes share: how a step is split into tasks, GEMMs
// with packed weights for float and double, and where states lie.
#pragma once
#include <algorithm>

#include "kernels/common/phases.hpp"
#include "kernels/recurrent/recurrent_layout.hpp"
#include "kernels/recurrent/state_gemm.hpp"

namespace onnxtrain::kernels {

// A GEMM whose result comes group of units by group of units: z[rows, gates, group()].
template <class T>
class UnitGemm {
 public:
  UnitGemm() = default;
  UnitGemm(int64_t rows, int64_t gates, int64_t units, int64_t k, bool trans, int64_t ld)
      : gates_(gates), units_(units), k_(k), ld_(ld), trans_(trans) {
    if constexpr (kPacks)
      packed_ = simd::StateGemm(rows, gates, units, k, trans, ld);
    else
      group_ = 16;
  }
  int64_t group() const { return kPacks ? packed_.group() : group_; }
  int64_t groups() const { return kPacks ? packed_.groups() : (units_ + group_ - 1) / group_; }
  size_t packed_bytes() const { return kPacks && k_ > 0 ? packed_.packed_bytes() : 0; }
  // The form of the weights to pass to run().
  const T* pack(ThreadPool& pool, const T* weights, T* to) const {
    if constexpr (kPacks) {
      constexpr int64_t kElements = 32768;
      int64_t grain = kElements / std::max<int64_t>(1, gates_ * group() * k_);
      parallel_for(pool, groups(), grain,
                   [&](int64_t g0, int64_t g1) { packed_.pack(weights, g0, g1, to); });
      return to;
    } else {
      return weights;
    }
  }
  void run(ThreadPool& pool, const T* a, int64_t lda, int64_t rows, const T* b, int64_t group, T* z,
           bool add = false) const {
    if constexpr (kPacks) {
      packed_.run(a, lda, rows, b, group, z, add);
    } else {
      int64_t u = group * group_, n = std::min(group_, units_ - u), ldz = gates_ * group_;
      for (int64_t g = 0; g < gates_; ++g)
        simd::gemm_f64(pool, false, trans_, rows, n, k_, 1, a, lda,
                       b + (g * units_ + u) * (trans_ ? ld_ : 1), ld_, add, z + g * group_, ldz);
    }
  }

 private:
  static constexpr bool kPacks = std::is_same_v<T, float>;
  int64_t gates_ = 0, units_ = 0, k_ = 0, ld_ = 0, group_ = 1;
  bool trans_ = false;
  simd::StateGemm packed_;
};

// How a step is split: chains that never meet (directions, blocks of images), and tasks of a chain
// (blocks of groups of units), which meet after every phase. How it is cut never changes a result:
// every element is one chain of sums.
struct StepSplit {
  int64_t directions = 1, row_blocks = 1, unit_blocks = 1, batch = 0, groups = 0;

  StepSplit() = default;
  // work: multiply-adds of a step of one direction
  StepSplit(int64_t dirs, int64_t images, int64_t unit_groups, double work)
      : directions(dirs), batch(images), groups(unit_groups), work_(work) {
    cut(1);
    const int64_t each = (tasks_for(work * double(dirs)) + dirs - 1) / dirs;
    if (each > unit_blocks)
      row_blocks = std::clamp<int64_t>((each + unit_blocks - 1) / unit_blocks, 1,
                                       std::max<int64_t>(1, batch / kRows));
  }
  // The same with another number of blocks of images.
  StepSplit in_rows(int64_t blocks) const {
    StepSplit s = *this;
    s.cut(blocks);
    return s;
  }
  int64_t chains() const { return directions * row_blocks; }
  int64_t tasks() const { return chains() * unit_blocks; }

  // f(direction, first image, count, group) for every piece of a task; pieces of one task are small
  // enough for kScratch.
  static constexpr int64_t kRows = 8, kStrip = 48;
  template <class F>
  void each_piece(int64_t chain, int64_t task, F f) const {
    int64_t r = chain % row_blocks, d = chain / row_blocks;
    int64_t b1 = (r + 1) * batch / row_blocks;
    for (int64_t b = r * batch / row_blocks; b < b1; b += kStrip)
      for (int64_t g = task * groups / unit_blocks; g < (task + 1) * groups / unit_blocks; ++g)
        f(int(d), b, std::min(kStrip, b1 - b), g);
  }

 private:
  double work_ = 0;

  // A power of two: steps are short, nobody should wait for an odd task.
  static int64_t tasks_for(double work) {
    constexpr double kTaskWork = 32768, kMaxTasks = 16;
    const double most = std::min(work / kTaskWork, kMaxTasks);
    int64_t n = 1;
    while (double(2 * n) <= most) n *= 2;
    return n;
  }
  void cut(int64_t blocks) {
    row_blocks = blocks;
    unit_blocks =
        std::clamp<int64_t>(tasks_for(work_ / double(blocks)), 1, std::max<int64_t>(1, groups));
  }
};

// Runs all phases, each thread with images of its own where there are enough of them and the
// weights fit the caches: body(phase, split, chain, task).
template <class F>
void run_steps(ThreadPool& pool, Phases& phases, const StepSplit& split, double weight_bytes,
               int64_t count, F body) {
  constexpr double kCached = 2 << 20;
  const int64_t threads = pool.threads();
  const bool own =
      threads > 1 && split.batch >= StepSplit::kRows * threads && weight_bytes <= kCached;
  const StepSplit part = own ? split.in_rows(threads) : split;
  phases.run(pool, count, part.chains(), part.unit_blocks,
             [&](int64_t p, int64_t chain, int64_t task) { body(p, part, chain, task); });
}

// GEMMs of the piece a thread is working on. Not on the stack: callers' stacks may be small.
template <class T>
T* step_scratch() {
  constexpr int64_t kVectors = 8, kLanes = 16;  // of a group with all gates, for many rows
  alignas(64) static thread_local T z[StepSplit::kStrip * kVectors * kLanes];
  return z;
}

// Rows of states are kept apart so that they do not crowd one set of the cache.
inline int64_t state_stride(int64_t hidden) { return hidden % 256 == 0 ? hidden + 16 : hidden; }

// State tensors are [directions, batch, hidden], or [batch, directions, hidden].
inline int64_t state_at(const RecurrentShape& s, int d, int64_t b) {
  return (s.batch_first ? b * s.directions + d : d * s.batch + b) * s.hidden;
}
// Row (step, image) of Y.
inline int64_t output_at(const RecurrentShape& s, int d, int64_t t, int64_t b) {
  return (s.batch_first ? (b * s.steps + t) * s.directions + d
                        : (t * s.directions + d) * s.batch + b) *
         s.hidden;
}
template <class T>
void load_state(const RecurrentShape& s, const T* from, int d, T* to, int64_t stride) {
  for (int64_t b = 0; b < s.batch; ++b) {
    if (from)
      std::copy_n(from + state_at(s, d, b), s.hidden, to + b * stride);
    else
      std::fill_n(to + b * stride, s.hidden, T(0));
  }
}
template <class T>
void store_state(const RecurrentShape& s, const T* from, int64_t stride, int d, T* to) {
  if (!to) return;
  for (int64_t b = 0; b < s.batch; ++b)
    std::copy_n(from + b * stride, s.hidden, to + state_at(s, d, b));
}

}  // namespace onnxtrain::kernels
