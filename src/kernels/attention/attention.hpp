// Scaled dot product attention and its gradient, block of queries by block of queries: the matrix
// of scores never exists as a whole. Dropout of the probabilities is made again from its counter
// in the gradient.
#pragma once
#include <cstdint>
#include <limits>
#include <memory>

#include "core/threads.hpp"
#include "kernels/norm/rows.hpp"

namespace onnxtrain::kernels {

// Where element (batch b, head h, row s) of an operand begins.
struct HeadStrides {
  int64_t batch = 0, head = 0, row = 0;
  int64_t at(int64_t b, int64_t h, int64_t s = 0) const { return b * batch + h * head + s * row; }
};

struct AttentionShape {
  int64_t batch = 0, heads = 0, kv_heads = 0, queries = 0, keys = 0, width = 0, value_width = 0;
  HeadStrides q, k, v, y;
  double scale = 1, softcap = 0;
  bool causal = false;
  int64_t left = -1, right = -1;  // sliding window, -1: open
  int64_t past = 0;               // keys before the first query
  int mode = 0;                   // what the fourth output shows
  bool trim = false;  // causal, and nobody asks for scores above the diagonal: they are left out
  // Mask [batch, heads, queries, mask_keys]; strides are 0 where it is broadcast.
  bool has_mask = false, mask_is_bool = false;
  int64_t mask_keys = 0, mask_stride[4] = {0, 0, 0, 0};
  // A bool mask is open where it is open_is; closed scores become `fill`.
  bool open_is = true;
  double fill = -std::numeric_limits<double>::infinity();
  simd::EmptyRow empty = simd::EmptyRow::kZero;
  float ratio = 0;  // of the probabilities that are dropped
};

// Which random numbers: element i of [batch, heads, queries, keys] takes number i.
struct DropCounter {
  uint64_t seed = 0, stream = 0, step = 0;
  int64_t first = 0;  // of the first probability
};

template <class T>
struct AttentionArgs {
  const T *q, *k, *v;
  const void* mask;
  const int64_t* lengths;  // valid keys per batch item, or null
  T *y, *scores;           // scores [batch, heads, queries, keys] or null
  DropCounter drop = {};
  T* stats = nullptr;  // [batch, heads, queries, 2] or null: spares the gradient two passes
};

template <class T>
struct AttentionGradArgs {
  const T *dy, *q, *k, *v;
  const void* mask;
  const int64_t* lengths;
  T *dq, *dk, *dv;  // laid out as q, k, v
  T* dbias;         // [batch, heads, queries, keys] or null
  DropCounter drop = {};
  const T* stats = nullptr;  // what the forward run wrote, or null
};

template <class T>
class AttentionPlan {
 public:
  AttentionPlan(const AttentionShape& s, int threads);
  ~AttentionPlan();
  size_t workspace() const;
  size_t grad_workspace() const;
  void run(const AttentionArgs<T>& a, void* workspace, ThreadPool& pool);
  void grad(const AttentionGradArgs<T>& a, void* workspace, ThreadPool& pool);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace onnxtrain::kernels
