// Arithmetic on graph values, so that the lowered form of an operator reads like its formula:
//   Expr x{b, b.x(1)};  return {(x * sigmoid(x) + 1.0).v};
#pragma once
#include "op/grad_builder.hpp"

namespace onnxtrain::ops {

struct Expr {
  GradBuilder& b;
  ValueId v;
  Expr operator()(std::string_view op) const { return {b, b.call(op, {v})}; }  // x("Exp")
  Expr num(double c) const { return {b, b.scalar(c, v)}; }
};

inline Expr operator+(Expr x, Expr y) { return {x.b, x.b.add(x.v, y.v)}; }
inline Expr operator-(Expr x, Expr y) { return {x.b, x.b.sub(x.v, y.v)}; }
inline Expr operator*(Expr x, Expr y) { return {x.b, x.b.mul(x.v, y.v)}; }
inline Expr operator/(Expr x, Expr y) { return {x.b, x.b.div(x.v, y.v)}; }
inline Expr operator-(Expr x) { return {x.b, x.b.neg(x.v)}; }
inline Expr operator+(Expr x, double c) { return x + x.num(c); }
inline Expr operator-(Expr x, double c) { return x - x.num(c); }
inline Expr operator*(Expr x, double c) { return x * x.num(c); }
inline Expr operator/(Expr x, double c) { return x / x.num(c); }
inline Expr operator+(double c, Expr x) { return x.num(c) + x; }
inline Expr operator-(double c, Expr x) { return x.num(c) - x; }
inline Expr operator*(double c, Expr x) { return x.num(c) * x; }
inline Expr operator/(double c, Expr x) { return x.num(c) / x; }
inline Expr operator>(Expr x, Expr y) { return {x.b, x.b.call("Greater", {x.v, y.v})}; }
inline Expr operator<(Expr x, Expr y) { return {x.b, x.b.call("Less", {x.v, y.v})}; }
inline Expr operator>(Expr x, double c) { return x > x.num(c); }
inline Expr operator<(Expr x, double c) { return x < x.num(c); }
inline Expr equal(Expr x, Expr y) { return {x.b, x.b.call("Equal", {x.v, y.v})}; }
inline Expr both(Expr x, Expr y) { return {x.b, x.b.call("And", {x.v, y.v})}; }
inline Expr either(Expr x, Expr y) { return {x.b, x.b.call("Or", {x.v, y.v})}; }
inline Expr where(Expr c, Expr x, Expr y) { return {c.b, c.b.call("Where", {c.v, x.v, y.v})}; }
inline Expr where(Expr c, Expr x, double y) { return where(c, x, x.num(y)); }
inline Expr where(Expr c, double x, Expr y) { return where(c, y.num(x), y); }

}  // namespace onnxtrain::ops
