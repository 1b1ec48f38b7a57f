// CumSum and CumProd along an axis that is an input.
#include "ops/common/expr.hpp"
#include "ops/common/rows_shape.hpp"

namespace onnxtrain::ops {

namespace {

void shape(ShapeCtx& c) {
  if (c.in(1).size() != 1) model_error("OT1133", cat("axis of ", c.node().op, " is not a scalar"));
  if (c.rank(0) == 0) model_error("OT1133", cat(c.node().op, " of a scalar"));
  if (c.dtype(1) != DType::kInt32 && c.dtype(1) != DType::kInt64)
    model_error("OT1103", cat("axis of ", c.node().op, " is ", dtype_name(c.dtype(1)),
                              ", not int32 or int64"));
  c.set(0, c.dtype(0), c.shape(0));
}

template <bool kProduct>
Kernel make(Prepare& p) {
  bool exclusive = p.node().i("exclusive", 0) != 0, reverse = p.node().i("reverse", 0) != 0;
  bool is64 = p.in(1).dtype == DType::kInt64;
  Shape s = p.in(0).shape;
  return dispatch<float, double, Half, BFloat16, int32_t, int64_t, uint32_t, uint64_t>(
      p.in(0).dtype, p.node().op, [&]<class T>() -> Kernel {
        using C = compute_t<T>;
        using A = typename std::conditional_t<std::is_integral_v<C>, std::make_unsigned<C>,
                                              std::type_identity<C>>::type;
        return [=](const Run& r) {
          int64_t axis = is64 ? *r.in<int64_t>(1) : *r.in<int32_t>(1);
          Rows rows = Rows::along(
              s, normalize_axis(axis, int64_t(s.size()), "axis of a cumulative operator"));
          int64_t step = reverse ? -rows.inner : rows.inner,
                  start = reverse ? (rows.n - 1) * rows.inner : 0;
          if (rows.n == 0) return;
          parallel_for(*r.pool, rows.count(), rows.grain(), [&](int64_t b, int64_t e) {
            for (int64_t i = b; i < e; ++i) {
              const T* x = r.in<T>(0) + rows.at(i) + start;
              T* y = r.out<T>(0) + rows.at(i) + start;
              A acc = kProduct ? A(1) : A(0);
              for (int64_t k = 0; k < rows.n; ++k) {
                A v = A(C(x[k * step]));
                A next = kProduct ? A(acc * v) : A(acc + v);
                y[k * step] = T(C(exclusive ? acc : next));
                acc = next;
              }
            }
          });
        };
      });
}

using Grads = std::vector<ValueId>;

ValueId again(GradBuilder& b, const char* op, ValueId v, bool exclusive, bool reverse) {
  return b.call(op, {v, b.x(1)},
                {{"exclusive", int64_t(exclusive)}, {"reverse", int64_t(reverse)}});
}

Grads sum_rule(GradBuilder& b) {
  bool exclusive = b.node().i("exclusive", 0) != 0, reverse = b.node().i("reverse", 0) != 0;
  return {again(b, "CumSum", b.dy(), exclusive, !reverse), kNone};
}

// Before the first zero: the later results divided by x. At the first zero: the results as if it
// were 1. After it: nothing. Exact for any number of zeros.
Grads prod_rule(GradBuilder& b) {
  bool exclusive = b.node().i("exclusive", 0) != 0, reverse = b.node().i("reverse", 0) != 0;
  Expr x{b, b.x(0)}, dy{b, b.dy()}, y{b, b.y()};
  Expr is_zero = equal(x, x.num(0));
  Expr zeros{b, again(b, "CumSum", b.cast_like(is_zero.v, x.v), false, reverse), x.dtype};
  Expr one_so_far = equal(zeros, zeros.num(1));
  auto at_first = [&](Expr yes, Expr no) { return where(is_zero, where(one_so_far, yes, no), no); };
  Expr safe = where(is_zero, 1.0, x);
  Expr later{b, again(b, "CumSum", (dy * y).v, exclusive, !reverse), x.dtype};
  Expr filled{b, again(b, "CumProd", at_first(x.num(1), x).v, exclusive, reverse), x.dtype};
  Expr at_zero{b, again(b, "CumSum", (dy * filled).v, exclusive, !reverse), x.dtype};
  Expr before = equal(zeros, zeros.num(0));
  return {at_first(at_zero, where(before, later / safe, 0)).v, kNone};
}

}  // namespace

void register_cumulative(OpTable& t) {
  t.add({.name = "CumSum",
         .shape = shape,
         .impls = {{"ref", nullptr, make<false>}},
         .grad = sum_rule,
         .settings_from = 1});
  t.add({.name = "CumProd",
         .shape = shape,
         .impls = {{"ref", nullptr, make<true>}},
         .grad = prod_rule,
         .settings_from = 1});
}

}  // namespace onnxtrain::ops
