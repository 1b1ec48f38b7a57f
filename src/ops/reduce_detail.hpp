// Shared by the Reduce* operators: which axes are reduced, and the loop over them. An accumulation
// is a struct with
//   using A = ...;                    accumulator
//   static A init();                  of nothing
//   static void add(A&, C);           one more element (C: type to calculate in)
//   static void merge(A&, const A&);  two partial results, in order
//   static C finish(A, int64_t n);
#pragma once
#include <algorithm>

#include "kernels/simd/reduce.hpp"
#include "op/grad_builder.hpp"
#include "op/op.hpp"

namespace onnxtrain::ops {

// First opset in which `axes` is an input (ReduceSum: 13, the others: 18).
int reduce_axes_input_since(const std::string& op);
// Normalised, sorted axes for data of this rank; validates. Empty and not noop: all.
std::vector<int64_t> reduce_axes(const Node& n, int64_t rank, bool given,
                                 std::vector<int64_t> axes);
void reduce_shape(ShapeCtx& c);

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

// One part of one result whose elements lie in runs.
template <class T, class F>
typename F::A reduce_runs(const ReduceLoop& l, const T* x, int64_t r0, int64_t r1, int64_t i0,
                          int64_t i1) {
  using C = compute_t<T>;
  constexpr int kLanes =
      8;  // independent sums: exact order is fixed, and rounding errors stay small
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
  return lane[0];
}

template <class T, class F>
Kernel reduce_to_runs(Prepare& p, ReduceLoop l) {  // inner dimension reduced
  using A = typename F::A;
  p.workspace = l.parts > 1 ? size_t(l.parts * l.kept_count) * sizeof(A) : 0;
  return [l](const Run& r) {
    const T* x = r.in<T>(0);
    T* y = r.out<T>(0);
    A* partial = static_cast<A*>(r.workspace);
    auto one = [&](int64_t o, int64_t part) {
      const T* px = x + l.offset(o, l.kept, l.kept_strides);
      int64_t b = part * l.part;
      if (l.red_count == 1) return reduce_runs<T, F>(l, px, 0, 1, b, std::min(b + l.part, l.run));
      return reduce_runs<T, F>(l, px, b, std::min(b + l.part, l.red_count), 0, l.run);
    };
    int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, l.reduced / l.parts));
    parallel_for(*r.pool, l.kept_count * l.parts, grain, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        A a = one(i / l.parts, i % l.parts);
        if (l.parts == 1)
          y[i] = T(F::finish(a, l.reduced));
        else
          partial[i] = a;
      }
    });
    if (l.parts == 1) return;
    for (int64_t o = 0; o < l.kept_count; ++o) {
      A a = partial[o * l.parts];
      for (int64_t k = 1; k < l.parts; ++k) F::merge(a, partial[o * l.parts + k]);
      y[o] = T(F::finish(a, l.reduced));
    }
  };
}

template <class T, class F>
Kernel reduce_to_columns(Prepare& p, ReduceLoop l) {  // inner dimension kept
  using A = typename F::A;
  using C = compute_t<T>;
  p.workspace = l.parts > 1 ? size_t(l.parts * l.kept_count * l.run) * sizeof(A) : 0;
  int64_t blocks = (l.run + kReduceColumns - 1) / kReduceColumns;
  return [l, blocks](const Run& r) {
    const T* x = r.in<T>(0);
    T* y = r.out<T>(0);
    A* partial = static_cast<A*>(r.workspace);
    int64_t work = std::min(l.run, kReduceColumns) * std::max<int64_t>(1, l.red_count / l.parts);
    int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, work));
    parallel_for(*r.pool, l.kept_count * blocks * l.parts, grain, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        int64_t part = i % l.parts, block = i / l.parts % blocks, o = i / l.parts / blocks;
        int64_t c0 = block * kReduceColumns, n = std::min(kReduceColumns, l.run - c0);
        const T* px = x + l.offset(o, l.kept, l.kept_strides) + c0;
        A acc[kReduceColumns];
        for (int64_t c = 0; c < n; ++c) acc[c] = F::init();
        int64_t r1 = std::min((part + 1) * l.part, l.red_count);
        for (int64_t k = part * l.part; k < r1; ++k) {
          const T* row = px + l.offset(k, l.red, l.red_strides);
          for (int64_t c = 0; c < n; ++c) F::add(acc[c], C(row[c]));
        }
        int64_t at = o * l.run + c0;
        if (l.parts == 1)
          for (int64_t c = 0; c < n; ++c) y[at + c] = T(F::finish(acc[c], l.reduced));
        else
          for (int64_t c = 0; c < n; ++c) partial[part * l.kept_count * l.run + at + c] = acc[c];
      }
    });
    if (l.parts == 1) return;
    int64_t total = l.kept_count * l.run;
    for (int64_t i = 0; i < total; ++i) {
      A a = partial[i];
      for (int64_t k = 1; k < l.parts; ++k) F::merge(a, partial[k * total + i]);
      y[i] = T(F::finish(a, l.reduced));
    }
  };
}

template <class T, class F>
Kernel reduce_kernel(Prepare& p) {
  ReduceLoop l = reduce_loop(p);
  if (p.out(0).size() == 0) return [](const Run&) {};
  if (l.reduced == 0) {
    int64_t n = p.out(0).size();
    return [n](const Run& r) { std::fill_n(r.out<T>(0), n, T(F::finish(F::init(), 0))); };
  }
  return l.inner_reduced ? reduce_to_runs<T, F>(p, std::move(l))
                         : reduce_to_columns<T, F>(p, std::move(l));
}

// The float kernels of kernels/simd: for one stretch of reduced dimensions, or two of which the
// second is innermost. `last` is applied to the results.
std::string refuses_simd_reduce(const Prepare& p);
Kernel make_simd_reduce(Prepare& p, simd::Reduce op, float (*last)(float));

// Gradient rules: v (shape of the output) with the reduced dimensions back as 1.
ValueId unreduce(GradBuilder& b, ValueId v);
// Sum over the axes of the node, which stay as 1.
ValueId reduce_again(GradBuilder& b, std::string_view op, ValueId v);
std::vector<ValueId> reduce_result(GradBuilder& b, ValueId dx);

}  // namespace onnxtrain::ops
