// LpNormalization (along one axis) and MeanVarianceNormalization (over any axes).
#include <cmath>

#include "ops/common/rows_shape.hpp"
#include "ops/common/wide.hpp"
#include "ops/reduce/reduce_kernel.hpp"

namespace onnxtrain::ops {

namespace {

using Grads = std::vector<ValueId>;

int64_t lp_order(const Node& n) {
  int64_t p = n.i("p", 2);
  if (p != 1 && p != 2)
    model_error("OT1134", cat("p of LpNormalization is ", p, ", it can be 1 or 2"));
  return p;
}

void lp_shape(ShapeCtx& c) {
  lp_order(c.node());
  normalize_axis(c.node().i("axis", -1), c.rank(0), "axis of LpNormalization");
  c.set(0, c.dtype(0), c.shape(0));
}

Kernel make_lp(Prepare& p) {
  const Shape& s = p.in(0).shape;
  Rows rows = Rows::along(
      s, normalize_axis(p.node().i("axis", -1), int64_t(s.size()), "axis of LpNormalization"));
  bool two = lp_order(p.node()) == 2;
  return dispatch<float, double, Half, BFloat16>(
      p.in(0).dtype, "LpNormalization", [&]<class T>() -> Kernel {
        using C = compute_t<T>;
        return [rows, two](const Run& r) {
          parallel_for(*r.pool, rows.count(), rows.grain(), [&](int64_t b, int64_t e) {
            for (int64_t i = b; i < e; ++i) {
              const T* x = r.in<T>(0) + rows.at(i);
              T* y = r.out<T>(0) + rows.at(i);
              int64_t step = rows.inner;
              C sum = lane_sum<C>(rows.n, [&](int64_t k) {
                C v = C(x[k * step]);
                return two ? v * v : std::fabs(v);
              });
              C norm = two ? std::sqrt(sum) : sum;
              // nothing to scale: 0, not 0/0
              for (int64_t k = 0; k < rows.n; ++k)
                y[k * step] = norm == C(0) ? T(C(0)) : T(C(x[k * step]) / norm);
            }
          });
        };
      });
}

Grads lp_rule(GradBuilder& b) {
  int64_t axis = b.node().i("axis", -1);
  bool two = lp_order(b.node()) == 2;
  const char* op = two ? "ReduceL2" : "ReduceL1";
  Expr x{b, b.x(0)}, dy{b, b.dy()}, y{b, b.y()};
  ValueId n = b.opset() >= 18 ? b.call(op, {x.v, b.constant_ints({axis})})
                              : b.call(op, {x.v}, {{"axes", std::vector<int64_t>{axis}}});
  Expr norm{b, n, x.dtype};
  Expr zero = equal(norm, norm.num(0));
  Expr dot{b, b.reduce_sum((dy * y).v, {axis}), x.dtype};
  Expr inner = two ? dy - y * dot : dy - x("Sign") * dot;
  return {where(zero, inner.num(0), inner / where(zero, 1.0, norm)).v};
}

// axes of MeanVarianceNormalization, sorted
std::vector<int64_t> mvn_axes(const Node& n, int64_t rank) {
  std::vector<char> is(size_t(rank), 0);
  for (int64_t a : n.ints("axes", {0, 2, 3}))
    is[size_t(normalize_axis(a, rank, "axes of MeanVarianceNormalization"))] = 1;
  std::vector<int64_t> axes;
  for (int64_t d = 0; d < rank; ++d)
    if (is[size_t(d)]) axes.push_back(d);
  return axes;
}
void mvn_shape(ShapeCtx& c) {
  mvn_axes(c.node(), c.rank(0));
  c.set(0, c.dtype(0), c.shape(0));
}

Kernel make_mvn(Prepare& p) {
  const Shape& s = p.in(0).shape;
  ReduceLoop l(s, mvn_axes(p.node(), int64_t(s.size())));
  if (p.out(0).size() == 0) return [](const Run&) {};
  return dispatch<float, double, Half, BFloat16>(
      p.in(0).dtype, "MeanVarianceNormalization", [&]<class T>() -> Kernel {
        using C = compute_t<T>;
        return [l](const Run& r) {
          const T* x = r.in<T>(0);
          T* y = r.out<T>(0);
          // a group is a kept index; its elements are runs, or single ones `stride` apart
          int64_t groups = l.inner_reduced ? l.kept_count : l.kept_count * l.run;
          int64_t run = l.inner_reduced ? l.run : 1;
          parallel_for(
              *r.pool, groups, std::max<int64_t>(1, 4096 / l.reduced), [&](int64_t b, int64_t e) {
                for (int64_t g = b; g < e; ++g) {
                  int64_t at = l.inner_reduced
                                   ? l.offset(g, l.kept, l.kept_strides)
                                   : l.offset(g / l.run, l.kept, l.kept_strides) + g % l.run;
                  auto each = [&](auto f) {
                    for (int64_t k = 0; k < l.red_count; ++k)
                      f(at + l.offset(k, l.red, l.red_strides));
                  };
                  double sum = 0, squares = 0;
                  each([&](int64_t o) {
                    sum += double(lane_sum<C>(run, [&](int64_t i) { return C(x[o + i]); }));
                  });
                  C mean = C(sum / double(l.reduced));
                  each([&](int64_t o) {
                    squares += double(lane_sum<C>(run, [&](int64_t i) {
                      C d = C(x[o + i]) - mean;
                      return d * d;
                    }));
                  });
                  C inv = C(1.0 / (std::sqrt(squares / double(l.reduced)) + 1e-9));
                  each([&](int64_t o) {
                    for (int64_t i = 0; i < run; ++i) y[o + i] = T((C(x[o + i]) - mean) * inv);
                  });
                }
              });
        };
      });
}

Grads mvn_rule(GradBuilder& b) {
  const Expr x = widened(Expr{b, b.x(0)}), dy = widened(Expr{b, b.dy()});
  std::vector<int64_t> axes = b.node().ints("axes", {0, 2, 3});
  auto mean = [&](Expr v) {
    GradBuilder::Attrs keep{{"keepdims", int64_t(1)}};
    if (axes.empty()) return v;
    if (b.opset() >= 18)
      return Expr{b, b.call("ReduceMean", {v.v, b.constant_ints(axes)}, keep), v.dtype};
    keep["axes"] = axes;
    return Expr{b, b.call("ReduceMean", {v.v}, keep), v.dtype};
  };
  Expr c = x - mean(x);
  Expr std = mean(c * c)("Sqrt");
  Expr d = std + 1e-9;
  Expr zero = equal(std, std.num(0));
  Expr through = where(zero, std.num(0), mean(dy * c) / (d * where(zero, 1.0, std)));
  return {b.cast_like(((dy - mean(dy) - c * through) / d).v, b.x(0))};
}

}  // namespace

void register_axis_norms(OpTable& t) {
  t.add({.name = "LpNormalization",
         .shape = lp_shape,
         .impls = {{"ref", nullptr, make_lp}},
         .grad = lp_rule});
  t.add({.name = "MeanVarianceNormalization",
         .shape = mvn_shape,
         .impls = {{"ref", nullptr, make_mvn}},
         .grad = mvn_rule});
}

}  // namespace onnxtrain::ops
