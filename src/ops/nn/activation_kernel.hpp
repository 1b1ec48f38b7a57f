// Shared by activation functions. A function is a struct made from its node, with
//   template <class C> C operator()(C x) const;           the value
//   template <class C> C grad(C dy, C s) const;           dy times the derivative at s
//   Expr lower(Expr dy, Expr s) const;                    the same in standard operators
//   static constexpr bool kFromY;                         s is the result (else the argument)
//   Tile tile() const, grad_tile() const;                 optional: the vector functions for float
//   const char* epilogue() const;                         optional: its name in StridedMatMul
// Its gradient is an operator of our own domain, NAMEGrad(dy, s), with the same attributes.
#pragma once
#include "kernels/elementwise/elementwise.hpp"
#include "op/channels_last.hpp"
#include "ops/common/elementwise_kernel.hpp"
#include "ops/common/expr.hpp"

namespace onnxtrain::ops {

struct Tile {
  simd::MicroOp op = simd::MicroOp::kCount;  // kCount: none
  float params[2] = {0, 0};
};
template <class F>
Tile tile_of(const Node& n, bool grad) {
  F f(n);
  if constexpr (requires { f.tile(); }) {
    if (!grad) return f.tile();
  }
  if constexpr (requires { f.grad_tile(); }) {
    if (grad) return f.grad_tile();
  }
  return {};
}

template <class F, bool kGrad>
std::string refuses_tile(const Prepare& p) {
  if (p.in(0).dtype != DType::kFloat) return "only for float";
  return tile_of<F>(p.node(), kGrad).op == simd::MicroOp::kCount
             ? "no vector function with these attributes"
             : "";
}

template <class F, bool kGrad>
Kernel make_tile(Prepare& p) {
  Tile t = tile_of<F>(p.node(), kGrad);
  simd::TileFn fn = simd::micro_op(t.op);
  int64_t n = p.out(0).size();
  return [t, fn, n](const Run& r) {
    float* y = r.out<float>(0);
    parallel_for(*r.pool, n, kGrain, [&](int64_t b, int64_t e) {
      const float* in[2] = {r.in<float>(0) + b, kGrad ? r.in<float>(1) + b : nullptr};
      fn(in, y + b, e - b, t.params);
    });
  };
}

// The step of a fused chain; attributes are read again when the chain is prepared.
template <class F>
int micro_activation(bool grad) {
  Tile t = tile_of<F>(Node{}, grad);
  return t.op == simd::MicroOp::kCount ? -1 : int(t.op);
}

template <class F, class... Ts>
Kernel make_activation(Prepare& p) {
  return dispatch<Ts...>(p.in(0).dtype, p.node().op, [&]<class T>() {
    F f(p.node());
    return unary_kernel<T, T>(p, [f](compute_t<T> v) { return f(v); });
  });
}

template <class F>
Kernel make_activation_grad(Prepare& p) {
  return dispatch<float, double, Half, BFloat16>(p.in(0).dtype, p.node().op, [&]<class T>() {
    using C = compute_t<T>;
    F f(p.node());
    return binary_kernel<T, T>(p, [f](C dy, C s) { return f.grad(dy, s); });
  });
}

inline void activation_grad_shape(ShapeCtx& c) {
  if (c.shape(0) != c.shape(1) || c.dtype(0) != c.dtype(1))
    model_error("OT1133",
                cat(c.node().op, " of ", to_string(c.shape(0)), " at ", to_string(c.shape(1))));
  c.set(0, c.dtype(0), c.shape(0));
}

// Attributes and the forward version travel with the gradient node: defaults depend on them.
template <class F>
std::vector<ValueId> activation_rule(GradBuilder& b) {
  GradBuilder::Attrs attrs = b.node().attrs;
  attrs.erase("consumed_inputs");
  attrs["opset"] = int64_t(b.node().version);
  return {b.own(b.node().op + "Grad", {b.dy(), F::kFromY ? b.y() : b.x(0)}, std::move(attrs))};
}

template <class F>
std::vector<ValueId> activation_lower(GradBuilder& b) {
  F f(b.node());
  return {f.lower(Expr{b, b.x(0)}, Expr{b, b.x(1)}).v};
}

using Epilogue = const char* (*)(const Node&);
template <class F>
constexpr Epilogue epilogue_of() {
  if constexpr (requires(const F& f) { f.epilogue(); })
    return [](const Node& n) { return F(n).epilogue(); };
  return nullptr;
}

template <class F, class... Ts>
void add_activation(OpTable& t, const char* name) {
  const ChannelsLast elementwise{.elementwise = true};
  t.add({.name = name,
         .shape = shape_same,
         .impls = {{"simd", refuses_tile<F, false>, make_tile<F, false>},
                   {"ref", nullptr, make_activation<F, Ts...>}},
         .grad = activation_rule<F>,
         .in_place = {{0, 0}},
         .micro_op = micro_activation<F>(false),
         .epilogue = epilogue_of<F>(),
         .channels_last = elementwise});
  t.add({.name = std::string(name) + "Grad",
         .domain = std::string(kOwnDomain),
         .shape = activation_grad_shape,
         .impls = {{"simd", refuses_tile<F, true>, make_tile<F, true>},
                   {"ref", nullptr, make_activation_grad<F>}},
         .in_place = {{0, 0}, {1, 0}},
         .micro_op = micro_activation<F>(true),
         .epilogue_gradient = epilogue_of<F>(),
         .channels_last = elementwise,
         .lower = activation_lower<F>});
}
template <class F>
void add_float_activation(OpTable& t, const char* name) {
  add_activation<F, float, double, Half, BFloat16>(t, name);
}

}  // namespace onnxtrain::ops
