// Softmax, LogSoftmax, Hardmax. Before opset 13 all dimensions from `axis` on are one row.
#include <cmath>
#include <limits>

#include "kernels/norm/rows.hpp"
#include "ops/common/cost.hpp"
#include "ops/common/elementwise_kernel.hpp"
#include "ops/common/rows_shape.hpp"
#include "ops/common/wide.hpp"

namespace onnxtrain::ops {

namespace {

bool is_flat(const Node& n) {
  return n.domain == kOwnDomain ? n.i("flat", 0) != 0 : n.version < 13;
}
int64_t axis_attr(const Node& n) { return n.i("axis", is_flat(n) ? 1 : -1); }

// Flat semantics allow axis = rank (every element its own row) and the default 1 on a scalar.
Rows rows_of(const Node& n, const Shape& s) {
  int64_t rank = int64_t(s.size()), axis = axis_attr(n);
  if (is_flat(n)) {
    if (axis < 0) axis += rank;
    if (axis < 0 || axis > std::max<int64_t>(rank, 1))
      model_error("OT1130", cat("axis of ", n.op, " is out of range for rank ", rank));
    return Rows::along(s, std::min(axis, rank), true);
  }
  if (rank == 0 && (axis == -1 || axis == 0)) return Rows();
  return Rows::along(s, normalize_axis(axis, rank, "axis of a softmax"));
}

void shape(ShapeCtx& c) {
  rows_of(c.node(), c.shape(0));
  c.set(0, c.dtype(0), c.shape(0));
}

enum class Kind { kSoft, kLog, kHard };

// The sum of a row as numpy takes it: float16 in float; bfloat16 rounds after every addition, which
// is only harmless, and only done, for short rows (256 + 1 is 256 in bfloat16).
template <class T>
float sum_16(const T* y, int64_t n, int64_t step) {
  if (std::is_same_v<T, BFloat16> && n <= 16) {
    float sum = 0;
    for (int64_t i = 0; i < n; ++i) sum = float(T(sum + float(y[i * step])));
    return sum;
  }
  return lane_sum<float>(n, [&](int64_t i) { return float(y[i * step]); });
}

template <class T, Kind kKind>
void one_row(const T* x, T* y, int64_t n, int64_t step) {
  using C = compute_t<T>;
  C top = -std::numeric_limits<C>::infinity();
  int64_t first = 0;
  for (int64_t i = 0; i < n; ++i) {
    C v = C(x[i * step]);
    if (v > top || (v != v && top == top)) {
      top = v;
      first = i;
    }
  }
  if constexpr (kKind == Kind::kHard) {
    for (int64_t i = 0; i < n; ++i) y[i * step] = T(C(i == first ? 1 : 0));
  } else if constexpr (kKind == Kind::kSoft && std::is_same_v<T, C>) {
    for (int64_t i = 0; i < n; ++i) y[i * step] = std::exp(x[i * step] - top);
    C scale = C(1) / lane_sum<C>(n, [&](int64_t i) { return y[i * step]; });
    for (int64_t i = 0; i < n; ++i) y[i * step] *= scale;
  } else if constexpr (kKind == Kind::kSoft) {
    // 16-bit types: every step of the definition is rounded to the type
    for (int64_t i = 0; i < n; ++i) y[i * step] = T(std::exp(C(T(C(x[i * step]) - top))));
    C sum = sum_16<T>(y, n, step);
    if (std::isfinite(C(T(sum)))) sum = C(T(sum));  // more than 65504 equal numbers: not a float16
    for (int64_t i = 0; i < n; ++i) y[i * step] = T(C(y[i * step]) / sum);
  } else {
    C log_sum = std::log(lane_sum<C>(n, [&](int64_t i) { return std::exp(C(x[i * step]) - top); }));
    for (int64_t i = 0; i < n; ++i) y[i * step] = T(C(x[i * step]) - top - log_sum);
  }
}

template <Kind kKind>
Kernel make(Prepare& p) {
  Rows rows = rows_of(p.node(), p.in(0).shape);
  return dispatch<float, double, Half, BFloat16>(
      p.in(0).dtype, p.node().op, [&]<class T>() -> Kernel {
        return [rows](const Run& r) {
          const T* x = r.in<T>(0);
          T* y = r.out<T>(0);
          if (rows.n == 0) return;
          parallel_for(*r.pool, rows.count(), rows.grain(), [&](int64_t b, int64_t e) {
            for (int64_t i = b; i < e; ++i)
              one_row<T, kKind>(x + rows.at(i), y + rows.at(i), rows.n, rows.inner);
          });
        };
      });
}

// dx = y (dy - sum(dy y)), or dy - exp(y) sum(dy) for the logarithm
template <bool kLog>
Kernel make_grad(Prepare& p) {
  Rows rows = rows_of(p.node(), p.in(0).shape);
  return dispatch<float, double, Half, BFloat16>(
      p.in(0).dtype, p.node().op, [&]<class T>() -> Kernel {
        using C = compute_t<T>;
        return [rows](const Run& r) {
          const T *dys = r.in<T>(0), *ys = r.in<T>(1);
          T* dxs = r.out<T>(0);
          int64_t n = rows.n, s = rows.inner;
          parallel_for(*r.pool, rows.count(), rows.grain(), [&](int64_t b, int64_t e) {
            for (int64_t i = b; i < e; ++i) {
              int64_t at = rows.at(i);
              const T *dy = dys + at, *y = ys + at;
              T* dx = dxs + at;
              if constexpr (kLog) {
                C sum = lane_sum<C>(n, [&](int64_t k) { return C(dy[k * s]); });
                for (int64_t k = 0; k < n; ++k)
                  dx[k * s] = T(C(dy[k * s]) - std::exp(C(y[k * s])) * sum);
              } else {
                C sum = lane_sum<C>(n, [&](int64_t k) { return C(dy[k * s]) * C(y[k * s]); });
                for (int64_t k = 0; k < n; ++k) dx[k * s] = T(C(y[k * s]) * (C(dy[k * s]) - sum));
              }
            }
          });
        };
      });
}

std::string refuses_simd(const Prepare& p) {
  if (p.in(0).dtype != DType::kFloat) return "only for float";
  Rows rows = rows_of(p.node(), p.in(0).shape);
  return rows.inner != 1 ? "rows are not contiguous" : rows.n == 0 ? "empty" : "";
}

template <bool kLog>
Kernel make_simd(Prepare& p) {
  Rows rows = rows_of(p.node(), p.in(0).shape);
  return [rows](const Run& r) {
    if (kLog)
      simd::log_softmax(*r.pool, r.in<float>(0), r.out<float>(0), rows.count(), rows.n);
    else
      simd::softmax(*r.pool, r.in<float>(0), r.out<float>(0), rows.count(), rows.n);
  };
}
template <bool kLog>
Kernel make_simd_grad(Prepare& p) {
  Rows rows = rows_of(p.node(), p.in(0).shape);
  return [rows](const Run& r) {
    const float *dy = r.in<float>(0), *y = r.in<float>(1);
    if (kLog)
      simd::log_softmax_grad(*r.pool, dy, y, r.out<float>(0), rows.count(), rows.n);
    else
      simd::softmax_grad(*r.pool, dy, y, r.out<float>(0), rows.count(), rows.n);
  };
}

using Grads = std::vector<ValueId>;

// Logarithms of 16-bit types again in float32: their rounding is a relative error of the
// probabilities (-11.2 in bfloat16: 3 %).
Grads log_rule(GradBuilder& b) {
  const GradBuilder::Attrs attrs = {{"axis", axis_attr(b.node())},
                                    {"flat", int64_t(is_flat(b.node()))}};
  const DType type = b.dtype(b.x(0));
  if (!is_narrow(type) || is_flat(b.node()) != (b.opset() < 13))
    return {b.own("LogSoftmaxGrad", {b.dy(), b.y()}, attrs)};
  const ValueId y =
      b.call("LogSoftmax", {widened(Expr{b, b.x(0), type}).v}, {{"axis", axis_attr(b.node())}});
  const ValueId dy = widened(Expr{b, b.dy(), type}).v;
  return {narrowed(b, b.own("LogSoftmaxGrad", {dy, y}, attrs), type)};
}
Grads rule(GradBuilder& b) {
  return {b.own("SoftmaxGrad", {b.dy(), b.y()},
                {{"axis", axis_attr(b.node())}, {"flat", int64_t(is_flat(b.node()))}})};
}
Grads zero_rule(GradBuilder&) { return {kNone}; }

template <bool kLog>
Grads lower(GradBuilder& b) {
  int64_t axis = axis_attr(b.node());
  std::vector<int64_t> axes = {axis};
  if (is_flat(b.node())) {
    int64_t rank = b.need_rank(b.x(0));
    axes.clear();
    for (int64_t d = axis < 0 ? axis + rank : axis; d < rank; ++d) axes.push_back(d);
  }
  Expr dy{b, b.x(0)}, y{b, b.x(1)};
  auto sum = [&](Expr v) { return axes.empty() ? v : Expr{b, b.reduce_sum(v.v, axes)}; };
  if (kLog) return {(dy - y("Exp") * sum(dy)).v};
  return {(y * (dy - sum(dy * y))).v};
}

}  // namespace

void register_softmax(OpTable& t) {
  auto add = [&](const char* name, std::vector<Impl> forward, std::vector<Impl> backward,
                 GradFn grad, LowerFn low) {
    t.add({.name = name,
           .shape = shape,
           .impls = std::move(forward),
           .grad = grad,
           .in_place = {{0, 0}},
           .cost = cost_per_element<5>});
    t.add({.name = std::string(name) + "Grad",
           .domain = std::string(kOwnDomain),
           .shape = shape,
           .impls = std::move(backward),
           .in_place = {{0, 0}},
           .cost = cost_per_element<4>,
           .lower = low});
  };
  add("Softmax", {{"simd", refuses_simd, make_simd<false>}, {"ref", nullptr, make<Kind::kSoft>}},
      {{"simd", refuses_simd, make_simd_grad<false>}, {"ref", nullptr, make_grad<false>}}, rule,
      lower<false>);
  add("LogSoftmax", {{"simd", refuses_simd, make_simd<true>}, {"ref", nullptr, make<Kind::kLog>}},
      {{"simd", refuses_simd, make_simd_grad<true>}, {"ref", nullptr, make_grad<true>}}, log_rule,
      lower<true>);
  t.add({.name = "Hardmax",
         .shape = shape,
         .impls = {{"ref", nullptr, make<Kind::kHard>}},
         .grad = zero_rule,
         .in_place = {{0, 0}}});
}

}  // namespace onnxtrain::ops
