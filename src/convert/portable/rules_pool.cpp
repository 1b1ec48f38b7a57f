// Norms of windows and of axes by sums of powers.
#include "convert/portable/rules.hpp"
#include "convert/portable/windows.hpp"

namespace onnxtrain::portable {

namespace {

using Values = std::vector<ValueId>;

double power_of(const Node& n) {  // opset 1 has a float
  const Attr* a = n.find("p");
  return a && std::holds_alternative<float>(*a) ? double(n.f("p", 2)) : double(n.i("p", 2));
}

ValueId powers(Site& s, ValueId x, double p) {
  if (p == 2) return s.mul(x, x);
  const ValueId size = s.call("Abs", {x});
  return p == 1 ? size : s.call("Pow", {size, s.scalar(p, x)});
}
ValueId root(Site& s, ValueId sum, double p) {
  if (p == 1) return sum;
  return p == 2 ? s.call("Sqrt", {sum}) : s.call("Pow", {sum, s.scalar(1 / p, DType::kFloat)});
}

Values lp_pool(Site& s) {
  Windows w;
  if (s.context().few_nodes || s.dtype(s.x(0)) != DType::kFloat) return {};
  if (!windows_of(s, s.node(), s.x(0), s.y(), s.node().ints("kernel_shape"), w)) return {};
  const double p = power_of(s.node());
  const ValueId around = padded(s, powers(s, s.x(0), p), w, 0);
  ValueId sum = kNone;
  for (int64_t tap = 0; tap < w.taps(); ++tap) {
    const ValueId part = seen_by(s, around, w, tap);
    sum = sum == kNone ? part : s.add(sum, part);
  }
  return {root(s, sum, p)};
}

Values global_lp_pool(Site& s) {
  const int64_t rank = s.rank(s.x(0));
  if (s.context().few_nodes || rank < 3 || s.dtype(s.x(0)) != DType::kFloat) return {};
  std::vector<int64_t> axes;
  for (int64_t d = 2; d < rank; ++d) axes.push_back(d);
  const double p = power_of(s.node());
  return {root(s, s.reduce_sum(powers(s, s.x(0), p), axes), p)};
}

// A row of zeros stays zeros.
Values lp_normalization(Site& s) {
  const int64_t rank = s.rank(s.x(0));
  if (s.context().few_nodes || rank < 1 || s.dtype(s.x(0)) != DType::kFloat) return {};
  int64_t axis = s.node().i("axis", -1);
  if (axis < 0) axis += rank;
  const double p = power_of(s.node());
  const ValueId norm = root(s, s.reduce_sum(powers(s, s.x(0), p), {axis}), p);
  const ValueId none = s.call("Equal", {norm, s.scalar(0, DType::kFloat)});
  return {s.div(s.x(0), s.call("Where", {none, s.scalar(1, DType::kFloat), norm}))};
}

}  // namespace

Rules pool_rules() {
  return {{"LpPool", "sum_of_powers", lp_pool},
          {"GlobalLpPool", "sum_of_powers", global_lp_pool},
          {"LpNormalization", "sum_of_powers", lp_normalization}};
}

}  // namespace onnxtrain::portable
