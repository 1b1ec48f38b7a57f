// Reductions: sums over adjacent axes, one group after the other (a runtime that sums [0,2,3]
// wrongly sums [2,3] and then [0] right), everything else from sums, means, largest and smallest.
#include <algorithm>

#include "convert/portable/rules.hpp"

namespace onnxtrain::portable {

namespace {

using Values = std::vector<ValueId>;

// The axes, counted from the front and in order; false when they are not known.
bool axes_of(Site& s, std::vector<int64_t>& axes) {
  const int64_t rank = s.rank(s.x(0));
  if (rank < 0) return false;
  axes.clear();
  if (s.has(1)) {
    if (!s.numbers(s.x(1), axes)) return false;
  } else if (s.node().has("axes")) {
    axes = s.node().ints("axes");
  }
  if (axes.empty()) {
    if (s.node().i("noop_with_empty_axes", 0) != 0) return true;
    for (int64_t d = 0; d < rank; ++d) axes.push_back(d);
  }
  for (int64_t& a : axes)
    if (a < 0) a += rank;
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return true;
}

ValueId reduce(Site& s, const std::string& op, ValueId v, const std::vector<int64_t>& axes,
               bool keep) {
  const int64_t dims = keep;
  const bool as_input = op == "ReduceSum" ? s.opset() >= 13 : s.opset() >= 18;
  if (as_input) return s.call(op, {v, s.ints(axes)}, {{"keepdims", dims}});
  return s.call(op, {v}, {{"axes", axes}, {"keepdims", dims}});
}

// Is it a product with a factor that is repeated along some of these axes and not along the others?
// IREE's compiler fails at its sum over several axes at once.
bool partly_repeated(Site& s, ValueId v, const std::vector<int64_t>& axes) {
  const Node* product = s.maker(v, "Mul");
  const std::vector<int64_t> all = s.sizes(v);
  if (!product || axes.size() < 2) return false;
  return std::any_of(product->inputs.begin(), product->inputs.end(), [&](ValueId factor) {
    if (const Node* expanded = s.maker(factor, "Expand")) factor = expanded->inputs[0];
    const std::vector<int64_t> own = s.sizes(factor);
    if (own.empty() || own.size() > all.size()) return false;
    const int64_t missing = int64_t(all.size() - own.size());
    const auto repeated = std::count_if(axes.begin(), axes.end(), [&](int64_t a) {
      return a < missing || (own[size_t(a - missing)] == 1 && all[size_t(a)] != 1);
    });
    return repeated > 0 && repeated < int64_t(axes.size());
  });
}

// Groups of adjacent axes, the last one first: the numbers of the others stay valid. A group has
// two axes at most, unless it reaches the last axis: OpenCV is silently wrong about three that
// leave one. One axis at a time where a factor is partly repeated. A single number is a squeezed
// tensor of one element: OpenCV's own reductions to no axes disagree about the shape.
ValueId in_groups(Site& s, const std::string& op, ValueId v, const std::vector<int64_t>& axes,
                  bool keep) {
  if (s.context().few_nodes) return reduce(s, op, v, axes, keep);
  if (!keep && int64_t(axes.size()) == s.rank(v))
    return s.squeeze(in_groups(s, op, v, axes, true), axes);
  const bool alone = partly_repeated(s, v, axes);
  for (size_t end = axes.size(); end > 0;) {
    size_t begin = end - 1;
    const bool to_the_end = axes[end - 1] == s.rank(v) - 1;
    while (!alone && begin > 0 && axes[begin - 1] == axes[begin] - 1 &&
           (to_the_end || end - begin < 2))
      --begin;
    v = reduce(s, op, v, {axes.begin() + int64_t(begin), axes.begin() + int64_t(end)}, keep);
    end = begin;
  }
  return v;
}

bool keeps(Site& s) { return s.node().i("keepdims", 1) != 0; }

// One group.
bool adjacent(const std::vector<int64_t>& axes, int64_t rank) {
  if (axes.empty()) return true;
  return axes.back() - axes.front() + 1 == int64_t(axes.size()) &&
         (axes.size() <= 2 || axes.back() == rank - 1);
}

// Already as it should be: adjacent axes that the node itself names.
bool is_plain(Site& s, const std::vector<int64_t>& axes) {
  if (!s.context().few_nodes &&
      (!adjacent(axes, s.rank(s.x(0))) || partly_repeated(s, s.x(0), axes) ||
       (!keeps(s) && int64_t(axes.size()) == s.rank(s.x(0)))))
    return false;
  const bool as_input = s.node().is("ReduceSum") ? s.opset() >= 13 : s.opset() >= 18;
  std::vector<int64_t> said;
  if (s.has(1))
    s.numbers(s.x(1), said);
  else
    said = s.node().ints("axes");
  return said == axes && s.has(1) == as_input;
}

Values same(Site& s) {
  std::vector<int64_t> axes;
  if (!axes_of(s, axes)) return {};
  if (axes.empty()) return {s.x(0)};
  if (is_plain(s, axes)) return {};
  return {in_groups(s, s.node().op, s.x(0), axes, keeps(s))};
}

Values sum_of(Site& s, ValueId v) {
  std::vector<int64_t> axes;
  if (!axes_of(s, axes)) return {};
  return {in_groups(s, "ReduceSum", v, axes, keeps(s))};
}

Values sum_square(Site& s) {
  if (s.context().few_nodes) return same(s);
  return sum_of(s, s.mul(s.x(0), s.x(0)));
}
Values norm2(Site& s) {
  Values v = sum_of(s, s.mul(s.x(0), s.x(0)));
  return v.empty() ? v : Values{s.call("Sqrt", {v[0]})};
}
Values norm1(Site& s) { return sum_of(s, s.call("Abs", {s.x(0)})); }
Values log_sum(Site& s) {
  Values v = sum_of(s, s.x(0));
  return v.empty() ? v : Values{s.call("Log", {v[0]})};
}
// The largest is taken out first: exp() does not overflow.
Values log_sum_exp(Site& s) {
  std::vector<int64_t> axes;
  if (!axes_of(s, axes) || axes.empty()) return {};
  const ValueId top = in_groups(s, "ReduceMax", s.x(0), axes, true);
  const ValueId all = in_groups(s, "ReduceSum", s.call("Exp", {s.sub(s.x(0), top)}), axes, true);
  const ValueId y = s.add(s.call("Log", {all}), top);
  return {keeps(s) ? y : s.squeeze(y, axes)};
}

}  // namespace

Rules reduce_rules() {
  return {{"ReduceSum", "adjacent_axes", same},
          {"ReduceMean", "adjacent_axes", same},
          {"ReduceMax", "adjacent_axes", same},
          {"ReduceMin", "adjacent_axes", same},
          {"ReduceSumSquare", "reduce_by_sum", sum_square},
          {"ReduceL1", "reduce_by_sum", norm1},
          {"ReduceL2", "reduce_by_sum", norm2},
          {"ReduceLogSum", "reduce_by_sum", log_sum},
          {"ReduceLogSumExp", "reduce_by_sum", log_sum_exp}};
}

}  // namespace onnxtrain::portable
