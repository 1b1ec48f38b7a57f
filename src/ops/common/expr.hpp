// Arithmetic on graph values, so that the lowered form of an operator reads like its formula:
//   Expr x{b, b.x(1)};  return {(x * sigmoid(x) + 1.0).v};
#pragma once
#include "op/grad_builder.hpp"

namespace onnxtrain::ops {

struct Expr {
  GradBuilder& b;
  ValueId v;
  DType dtype;  // of numbers beside it; known from the operands even where shapes are not
  Expr(GradBuilder& builder, ValueId value, DType t = DType::kUndefined)
      : b(builder), v(value), dtype(t == DType::kUndefined ? builder.dtype(value) : t) {}
  Expr(const Expr&) = default;
  Expr& operator=(const Expr& o) {  // of the same builder
    v = o.v;
    dtype = o.dtype;
    return *this;
  }
  Expr operator()(std::string_view op) const { return {b, b.call(op, {v}), dtype}; }  // x("Exp")
  Expr num(double c) const { return {b, b.scalar(c, dtype), dtype}; }
};

inline Expr combine(std::string_view op, Expr x, Expr y) {
  return {x.b, x.b.call(op, {x.v, y.v}), x.dtype == DType::kUndefined ? y.dtype : x.dtype};
}
inline Expr operator+(Expr x, Expr y) { return combine("Add", x, y); }
inline Expr operator-(Expr x, Expr y) { return combine("Sub", x, y); }
inline Expr operator*(Expr x, Expr y) { return combine("Mul", x, y); }
inline Expr operator/(Expr x, Expr y) { return combine("Div", x, y); }
inline Expr operator-(Expr x) { return x("Neg"); }
inline Expr operator+(Expr x, double c) { return x + x.num(c); }
inline Expr operator-(Expr x, double c) { return x - x.num(c); }
inline Expr operator*(Expr x, double c) { return x * x.num(c); }
inline Expr operator/(Expr x, double c) { return x / x.num(c); }
inline Expr operator+(double c, Expr x) { return x.num(c) + x; }
inline Expr operator-(double c, Expr x) { return x.num(c) - x; }
inline Expr operator*(double c, Expr x) { return x.num(c) * x; }
inline Expr operator/(double c, Expr x) { return x.num(c) / x; }
// Conditions: only for where().
inline Expr operator>(Expr x, Expr y) { return combine("Greater", x, y); }
inline Expr operator<(Expr x, Expr y) { return combine("Less", x, y); }
inline Expr operator>(Expr x, double c) { return x > x.num(c); }
inline Expr operator<(Expr x, double c) { return x < x.num(c); }
inline Expr equal(Expr x, Expr y) { return combine("Equal", x, y); }
inline Expr where(Expr c, Expr x, Expr y) {
  return {c.b, c.b.call("Where", {c.v, x.v, y.v}), x.dtype};
}
inline Expr where(Expr c, Expr x, double y) { return where(c, x, x.num(y)); }
inline Expr where(Expr c, double x, Expr y) { return where(c, y.num(x), y); }

}  // namespace onnxtrain::ops
