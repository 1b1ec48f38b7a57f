// Shared by element-wise operators: shape functions, broadcasting loops, typed kernels.
#pragma once
#include <algorithm>
#include <cmath>

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

// y[i] = f(x[i]) for input type T, output type R.
template <class T, class R, class F>
Kernel unary_kernel(Prepare& p, F f) {
  int64_t n = p.out(0).size();
  return [n, f](const Run& r) {
    const T* x = r.in<T>(0);
    R* y = r.out<R>(0);
    parallel_for(*r.pool, n, kGrain, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) y[i] = R(f(compute_t<T>(x[i])));
    });
  };
}

// y = f(a, b) with broadcasting; b may be of another type.
template <class T, class R, class T2 = T, class F>
Kernel binary_kernel(Prepare& p, F f) {
  BroadcastLoop loop({p.in(0).shape, second_shape(p.node(), p.in(0).shape, p.in(1).shape)},
                     p.out(0).shape);
  using C = compute_t<T>;
  using D = compute_t<T2>;
  return [loop, f](const Run& r) {
    const T* a = r.in<T>(0);
    const T2* b = r.in<T2>(1);
    R* y = r.out<R>(0);
    int64_t sa = loop.step[0], sb = loop.step[1], inner = loop.inner;
    parallel_for(*r.pool, loop.rows, loop.grain_rows(), [&](int64_t begin, int64_t end) {
      loop.run(begin, end, [&](int64_t o, const int64_t* at) {
        const T* pa = a + at[0];
        const T2* pb = b + at[1];
        R* py = y + o;
        if (sa == 1 && sb == 1) {
          for (int64_t i = 0; i < inner; ++i) py[i] = R(f(C(pa[i]), D(pb[i])));
        } else if (sa == 1) {
          D vb = D(pb[0]);
          for (int64_t i = 0; i < inner; ++i) py[i] = R(f(C(pa[i]), vb));
        } else if (sb == 1) {
          C va = C(pa[0]);
          for (int64_t i = 0; i < inner; ++i) py[i] = R(f(va, D(pb[i])));
        } else {
          R v = R(f(C(pa[0]), D(pb[0])));
          for (int64_t i = 0; i < inner; ++i) py[i] = v;
        }
      });
    });
  };
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
