// Element-wise functions of one argument from calculus: Exp, Log, Sqrt, the trigonometric and
// hyperbolic families, Reciprocal, Erf, and the ones whose derivative is zero almost everywhere.
#include "op/may_overflow.hpp"
#include "ops/common/elementwise_kernel.hpp"
#include "ops/common/elementwise_program.hpp"

namespace onnxtrain::ops {

namespace {

#define OT_FN(Name, expr)     \
  struct Name {               \
    template <class C>        \
    C operator()(C v) const { \
      return expr;            \
    }                         \
  };
// clang-format off
OT_FN(ExpF, std::exp(v))
OT_FN(LogF, std::log(v))
OT_FN(SqrtF, std::sqrt(v))
OT_FN(ReciprocalF, C(1) / v)
OT_FN(SinF, std::sin(v))
OT_FN(CosF, std::cos(v))
OT_FN(TanF, std::tan(v))
OT_FN(AsinF, std::asin(v))
OT_FN(AcosF, std::acos(v))
OT_FN(AtanF, std::atan(v))
OT_FN(SinhF, std::sinh(v))
OT_FN(CoshF, std::cosh(v))
OT_FN(TanhF, std::tanh(v))
OT_FN(AsinhF, std::asinh(v))
OT_FN(AcoshF, std::acosh(v))
OT_FN(AtanhF, std::atanh(v))
OT_FN(ErfF, std::erf(v))
OT_FN(FloorF, std::floor(v))
OT_FN(CeilF, std::ceil(v))
OT_FN(RoundF, std::nearbyint(v))
// clang-format on
#undef OT_FN

using Grads = std::vector<ValueId>;

Grads exp_grad(GradBuilder& b) { return {b.mul(b.dy(), b.y())}; }
Grads log_grad(GradBuilder& b) { return {b.div(b.dy(), b.x(0))}; }
Grads sqrt_grad(GradBuilder& b) { return {b.div(b.mul(b.dy(), b.scalar(0.5, b.y())), b.y())}; }
Grads reciprocal_grad(GradBuilder& b) { return {b.neg(b.mul(b.dy(), b.mul(b.y(), b.y())))}; }
Grads sin_grad(GradBuilder& b) { return {b.mul(b.dy(), b.call("Cos", {b.x(0)}))}; }
Grads cos_grad(GradBuilder& b) { return {b.neg(b.mul(b.dy(), b.call("Sin", {b.x(0)})))}; }
// 1 / (1 - v*v) and the like, from v*v and a sign
ValueId one_plus(GradBuilder& b, ValueId v, double sign) {
  ValueId sq = b.mul(v, v);
  ValueId one = b.scalar(1, v);
  return sign > 0 ? b.add(one, sq) : b.sub(one, sq);
}
Grads tan_grad(GradBuilder& b) { return {b.mul(b.dy(), one_plus(b, b.y(), 1))}; }
Grads tanh_grad(GradBuilder& b) { return {b.mul(b.dy(), one_plus(b, b.y(), -1))}; }
Grads asin_grad(GradBuilder& b) {
  return {b.div(b.dy(), b.call("Sqrt", {one_plus(b, b.x(0), -1)}))};
}
Grads acos_grad(GradBuilder& b) { return {b.neg(asin_grad(b)[0])}; }
Grads atan_grad(GradBuilder& b) { return {b.div(b.dy(), one_plus(b, b.x(0), 1))}; }
Grads sinh_grad(GradBuilder& b) { return {b.mul(b.dy(), b.call("Cosh", {b.x(0)}))}; }
Grads cosh_grad(GradBuilder& b) { return {b.mul(b.dy(), b.call("Sinh", {b.x(0)}))}; }
Grads asinh_grad(GradBuilder& b) {
  return {b.div(b.dy(), b.call("Sqrt", {one_plus(b, b.x(0), 1)}))};
}
Grads acosh_grad(GradBuilder& b) {
  ValueId x = b.x(0), one = b.scalar(1, x);
  return {b.div(b.dy(), b.mul(b.call("Sqrt", {b.sub(x, one)}), b.call("Sqrt", {b.add(x, one)})))};
}
Grads atanh_grad(GradBuilder& b) { return {b.div(b.dy(), one_plus(b, b.x(0), -1))}; }
Grads erf_grad(GradBuilder& b) {
  ValueId x = b.x(0);
  ValueId e = b.call("Exp", {b.neg(b.mul(x, x))});
  return {b.mul(b.dy(), b.mul(b.scalar(1.1283791670955126, x), e))};
}
// piecewise constant: the derivative is zero wherever it exists, as in PyTorch
Grads zero_grad(GradBuilder&) { return {kNone}; }

template <class F>
void add(OpTable& t, const char* name, GradFn grad) {
  t.add({.name = name,
         .shape = shape_same,
         .impls = {{"ref", nullptr, float_unary<F>}},
         .grad = grad,
         .in_place = {{0, 0}}});
}

using simd::MicroOp;

// With a vectorised path for float32.
template <class F, MicroOp micro>
void add(OpTable& t, const char* name, GradFn grad,
         const char* (*epilogue)(const Node&) = nullptr) {
  t.add({.name = name,
         .shape = shape_same,
         .impls = {micro_impl<micro>(), {"ref", nullptr, float_unary<F>}},
         .grad = grad,
         .in_place = {{0, 0}},
         .micro_op = int(micro),
         .epilogue = epilogue});
}

}  // namespace

void register_unary_math(OpTable& t) {
  for (const char* op :
       {"Exp", "Log", "Sqrt", "Reciprocal", "Asin", "Acos", "Sinh", "Cosh", "Acosh", "Atanh"})
    set_may_overflow(op);
  add<ExpF, MicroOp::kExp>(t, "Exp", exp_grad);
  add<LogF, MicroOp::kLog>(t, "Log", log_grad);
  add<SqrtF, MicroOp::kSqrt>(t, "Sqrt", sqrt_grad);
  add<ReciprocalF, MicroOp::kReciprocal>(t, "Reciprocal", reciprocal_grad);
  add<SinF, MicroOp::kSin>(t, "Sin", sin_grad);
  add<CosF, MicroOp::kCos>(t, "Cos", cos_grad);
  add<TanF>(t, "Tan", tan_grad);
  add<AsinF>(t, "Asin", asin_grad);
  add<AcosF>(t, "Acos", acos_grad);
  add<AtanF>(t, "Atan", atan_grad);
  add<SinhF>(t, "Sinh", sinh_grad);
  add<CoshF>(t, "Cosh", cosh_grad);
  add<TanhF, MicroOp::kTanh>(t, "Tanh", tanh_grad,
                             [](const Node&) -> const char* { return "Tanh"; });
  add<AsinhF>(t, "Asinh", asinh_grad);
  add<AcoshF>(t, "Acosh", acosh_grad);
  add<AtanhF>(t, "Atanh", atanh_grad);
  add<ErfF, MicroOp::kErf>(t, "Erf", erf_grad);
  add<FloorF, MicroOp::kFloor>(t, "Floor", zero_grad);
  add<CeilF, MicroOp::kCeil>(t, "Ceil", zero_grad);
  add<RoundF, MicroOp::kRound>(t, "Round", zero_grad);
}

}  // namespace onnxtrain::ops
