// Shared by the Reduce* operators: which axes are reduced, and the loops over them. An accumulation
// is a struct with
//   using A = ...;                    accumulator
//   static A init();                  of nothing
//   static void add(A&, C);           one more element (C: type to calculate in)
//   static void merge(A&, const A&);  two partial results, in order
//   static C finish(A, int64_t n);
#pragma once
#include <algorithm>

#include "kernels/reduce/reduce.hpp"
#include "op/grad_builder.hpp"
#include "op/op.hpp"

namespace onnxtrain::ops {

// First opset in which `axes` is an input (ReduceSum: 13, the others: 18).
int reduce_axes_input_since(const std::string& op);
// Normalised, sorted axes for data of this rank; validates. Empty and not noop: all.
std::vector<int64_t> reduce_axes(const Node& n, int64_t rank, bool given,
                                 const std::vector<int64_t>& axes);
void reduce_shape(ShapeCtx& c);
// The record of a reduction.
Op reduction(const char* name, std::vector<Impl> impls, GradFn grad);

// The data seen as merged dimensions, kept and reduced ones. `run` is the contiguous innermost
// stretch: reduced when inner_reduced, else kept.
struct ReduceLoop {
  ReduceLoop(const Shape& in, const std::vector<int64_t>& axes);
  bool inner_reduced = true;
  int64_t run = 1;
  std::vector<int64_t> kept, kept_strides, red, red_strides;  // outer dimensions
  int64_t kept_count = 1, red_count = 1;
  int64_t reduced = 1;  // elements that make one result
  // The reduction is cut into parts of `part` (of red_count, or of run when red_count is 1): the
  // cut depends on shapes only, parts are merged in order.
  int64_t parts = 1, part = 1;
  int64_t offset(int64_t i, const std::vector<int64_t>& dims,
                 const std::vector<int64_t>& strides) const {
    int64_t at = 0;
    for (size_t d = dims.size(); d-- > 0;) {
      at += i % dims[d] * strides[d];
      i /= dims[d];
    }
    return at;
  }
};
ReduceLoop reduce_loop(const Prepare& p);

inline constexpr int64_t kReduceColumns = 128;
inline constexpr size_t kReduceAccumulator = 16;  // bytes at most

// What is compiled for each operator and type; accumulators lie side by side.
struct ReduceFunctions {
  size_t element, accumulator;  // bytes
  // The elements [i0, i1) of the runs [r0, r1) behind element `at` of x.
  void (*runs)(const ReduceLoop& l, const void* x, int64_t at, int64_t r0, int64_t r1, int64_t i0,
               int64_t i1, void* a);
  // `n` columns from element `at` of x on, rows [r0, r1).
  void (*columns)(const ReduceLoop& l, const void* x, int64_t at, int64_t n, int64_t r0, int64_t r1,
                  void* a);
  void (*merge)(void* a, const void* b, int64_t n);
  // y[at..at+n) from n accumulators; null: from nothing.
  void (*finish)(const void* a, void* y, int64_t at, int64_t n, int64_t reduced);
};
Kernel reduce_kernel(Prepare& p, const ReduceFunctions& f);

template <class T, class F>
void reduce_runs(const ReduceLoop& l, const void* from, int64_t at, int64_t r0, int64_t r1,
                 int64_t i0, int64_t i1, void* result) {
  using C = compute_t<T>;
  constexpr int kLanes = 8;  // independent sums: the order is fixed, rounding errors stay small
  const T* x = static_cast<const T*>(from) + at;
  typename F::A lane[kLanes];
  for (auto& a : lane) a = F::init();
  for (int64_t r = r0; r < r1; ++r) {
    const T* p = x + l.offset(r, l.red, l.red_strides);
    int64_t i = i0;
    for (; i + kLanes <= i1; i += kLanes)
      for (int k = 0; k < kLanes; ++k) F::add(lane[k], C(p[i + k]));
    for (int k = 0; i < i1; ++i, ++k) F::add(lane[k], C(p[i]));
  }
  for (int step = kLanes / 2; step > 0; step /= 2)
    for (int k = 0; k < step; ++k) F::merge(lane[k], lane[k + step]);
  *static_cast<typename F::A*>(result) = lane[0];
}

template <class T, class F>
void reduce_columns(const ReduceLoop& l, const void* from, int64_t at, int64_t n, int64_t r0,
                    int64_t r1, void* result) {
  using C = compute_t<T>;
  const T* x = static_cast<const T*>(from) + at;
  typename F::A* a = static_cast<typename F::A*>(result);
  for (int64_t c = 0; c < n; ++c) a[c] = F::init();
  for (int64_t k = r0; k < r1; ++k) {
    const T* row = x + l.offset(k, l.red, l.red_strides);
    for (int64_t c = 0; c < n; ++c) F::add(a[c], C(row[c]));
  }
}

template <class F>
void reduce_merge(void* into, const void* other, int64_t n) {
  using A = typename F::A;
  A* a = static_cast<A*>(into);
  const A* b = static_cast<const A*>(other);
  for (int64_t i = 0; i < n; ++i) F::merge(a[i], b[i]);
}

template <class T, class F>
void reduce_finish(const void* accumulators, void* to, int64_t at, int64_t n, int64_t reduced) {
  using A = typename F::A;
  T* y = static_cast<T*>(to) + at;
  const A* a = static_cast<const A*>(accumulators);
  for (int64_t i = 0; i < n; ++i) y[i] = T(F::finish(a ? a[i] : F::init(), reduced));
}

template <class T, class F>
Kernel reduce_kernel(Prepare& p) {
  static_assert(sizeof(typename F::A) <= kReduceAccumulator);
  return reduce_kernel(p, {sizeof(T), sizeof(typename F::A), reduce_runs<T, F>,
                           reduce_columns<T, F>, reduce_merge<F>, reduce_finish<T, F>});
}

// The float kernels of kernels/reduce: for one stretch of reduced dimensions, or two of which the
// second is innermost. `last` is applied to the results.
std::string refuses_simd_reduce(const Prepare& p);
Kernel make_simd_reduce(Prepare& p, simd::Reduce op, float (*last)(float));

// Gradient rules: v (shape of the output) with the reduced dimensions back as 1.
ValueId unreduce(GradBuilder& b, ValueId v);
// Sum over the axes of the node, which stay as 1.
ValueId reduce_again(GradBuilder& b, std::string_view op, ValueId v);
std::vector<ValueId> reduce_result(GradBuilder& b, ValueId dx);

}  // namespace onnxtrain::ops
