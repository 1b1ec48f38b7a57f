// Shared by element-wise operators: shape functions, broadcasting loops, typed kernels.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <type_traits>

#include "op/grad_builder.hpp"
#include "op/op.hpp"

namespace onnxtrain::ops {

inline constexpr int64_t kGrain = 16 * 1024;  // elements per task of a cheap element-wise loop

// Output 0 has the type and shape of input 0.
void shape_same(ShapeCtx& c);
// Output 0 has the broadcast shape of all inputs and the type of input 0.
void shape_broadcast(ShapeCtx& c);
// The same with bool elements.
void shape_broadcast_bool(ShapeCtx& c);
// Shape of a binary operator's second input as it takes part in broadcasting: before opset 7 the
// attribute `axis` says where it lies in the first, which is the same as ones appended to it.
Shape second_shape(const Node& n, const Shape& a, const Shape& b);
// A model error unless all inputs have the type of the first.
void require_same_types(ShapeCtx& c);

// A gradient rule for opsets 1 to 6: the same rule after the second input got its trailing ones.
template <GradFn rule>
std::vector<ValueId> legacy_grad(GradBuilder& b);
ValueId legacy_second(GradBuilder& b);  // x(1) with trailing ones; itself when nothing is to do

// Broadcasting of up to 3 operands over an output, with neighbouring dimensions merged. Rows are
// runs of `inner` output elements in which operand k advances by step[k] (0 or 1) per element.
struct BroadcastLoop {
  BroadcastLoop(const std::vector<Shape>& operands, const Shape& out);
  static constexpr size_t kMaxDims = 64, kMaxOperands = 12;
  int64_t inner = 1, rows = 1;
  std::vector<int64_t> step;  // per operand
  // Calls f(output offset, operand offsets) for rows [begin, end).
  template <class F>
  void run(int64_t begin, int64_t end, F&& f) const {
    int64_t index[kMaxDims], at[kMaxOperands] = {};
    const size_t operands = step.size();
    int64_t rest = begin;
    for (size_t d = outer.size(); d-- > 0;) {
      index[d] = rest % outer[d];
      rest /= outer[d];
      for (size_t k = 0; k < operands; ++k) at[k] += index[d] * strides[k][d];
    }
    for (int64_t r = begin; r < end; ++r) {
      f(r * inner, static_cast<const int64_t*>(at));
      for (size_t d = outer.size(); d-- > 0;) {
        for (size_t k = 0; k < operands; ++k) at[k] += strides[k][d];
        if (++index[d] < outer[d]) break;
        for (size_t k = 0; k < operands; ++k) at[k] -= strides[k][d] * outer[d];
        index[d] = 0;
      }
    }
  }
  std::vector<int64_t> outer;                 // sizes of the outer dimensions
  std::vector<std::vector<int64_t>> strides;  // [operand][outer dimension]
  int64_t grain_rows() const { return std::max<int64_t>(1, kGrain / std::max<int64_t>(1, inner)); }
};

// The function of an element-wise kernel with what it holds. Only the loops over elements are
// compiled for each operator and type; what surrounds them is compiled once.
struct ElementFunction {
  alignas(8) unsigned char bytes[32] = {};
  template <class F>
  static ElementFunction of(const F& f) {
    static_assert(std::is_trivially_copyable_v<F> && sizeof(F) <= sizeof bytes);
    ElementFunction e;
    std::memcpy(e.bytes, &f, sizeof f);
    return e;
  }
  template <class F>
  const F& as() const {
    return *std::launder(reinterpret_cast<const F*>(bytes));
  }
};

// y[begin..end) from x.
using UnaryLoop = void (*)(const ElementFunction& f, const void* x, void* y, int64_t begin,
                           int64_t end);
Kernel unary_kernel(const Prepare& p, UnaryLoop loop, const ElementFunction& f);

// `n` elements of y; operands advance by 0 or 1 per element.
struct BinaryRow {
  const void *a, *b;
  void* y;
  int64_t step_a, step_b, n;
};
// The row at these offsets in y, a and b.
using BinaryLoop = void (*)(const ElementFunction& f, const BinaryRow& row, int64_t at_y,
                            int64_t at_a, int64_t at_b);
Kernel binary_kernel(const Prepare& p, BinaryLoop loop, const ElementFunction& f);

// y[i] = f(x[i]) for input type T, output type R.
template <class T, class R, class F>
Kernel unary_kernel(const Prepare& p, F function) {
  return unary_kernel(
      p,
      [](const ElementFunction& held, const void* from, void* to, int64_t begin, int64_t end) {
        const F f = held.as<F>();
        const T* x = static_cast<const T*>(from);
        R* y = static_cast<R*>(to);
        for (int64_t i = begin; i < end; ++i) y[i] = R(f(compute_t<T>(x[i])));
      },
      ElementFunction::of(function));
}

// y = f(a, b) with broadcasting; b may be of another type.
template <class T, class R, class T2 = T, class F>
Kernel binary_kernel(const Prepare& p, F function) {
  return binary_kernel(
      p,
      [](const ElementFunction& held, const BinaryRow& row, int64_t at_y, int64_t at_a,
         int64_t at_b) {
        using C = compute_t<T>;
        using D = compute_t<T2>;
        const F f = held.as<F>();
        const T* a = static_cast<const T*>(row.a) + at_a;
        const T2* b = static_cast<const T2*>(row.b) + at_b;
        R* y = static_cast<R*>(row.y) + at_y;
        const int64_t n = row.n;
        if (row.step_a == 1 && row.step_b == 1) {
          for (int64_t i = 0; i < n; ++i) y[i] = R(f(C(a[i]), D(b[i])));
        } else if (row.step_a == 1) {
          const D v = D(b[0]);
          for (int64_t i = 0; i < n; ++i) y[i] = R(f(C(a[i]), v));
        } else if (row.step_b == 1) {
          const C v = C(a[0]);
          for (int64_t i = 0; i < n; ++i) y[i] = R(f(v, D(b[i])));
        } else {
          const R v = R(f(C(a[0]), D(b[0])));
          for (int64_t i = 0; i < n; ++i) y[i] = v;
        }
      },
      ElementFunction::of(function));
}

template <GradFn rule>
std::vector<ValueId> legacy_grad(GradBuilder& b) {
  ValueId second = legacy_second(b);
  if (second == b.x(1)) return rule(b);
  Node n = b.node();
  n.inputs[1] = second;
  n.version = 7;
  GradBuilder inner(b.graph(), b.table(), n, {b.dy()}, b.opset());
  inner.set_wants({char(b.wants(0)), char(b.wants(1))});
  std::vector<ValueId> g = rule(inner);
  if (g[1] != kNone) g[1] = b.reshape_like(b.sum_to_shape_of(g[1], second), b.x(1));
  return g;
}

// A functor F with `template <class C> C operator()(C) const` over the four gradient float types.
template <class F>
Kernel float_unary(Prepare& p) {
  return dispatch<float, double, Half, BFloat16>(p.in(0).dtype, p.node().op, [&]<class T>() {
    return unary_kernel<T, T>(p, [](compute_t<T> v) { return F{}(v); });
  });
}

}  // namespace onnxtrain::ops
