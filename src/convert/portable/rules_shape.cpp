// Shapes as constants wherever they are known, at most one size left open as -1; operators whose
// form changed between opsets in one that did not.
#include <algorithm>
#include <cstdint>

#include "convert/portable/rules.hpp"

namespace onnxtrain::portable {

namespace {

using Values = std::vector<ValueId>;

int64_t open_sizes(const std::vector<int64_t>& s) { return std::count(s.begin(), s.end(), -1); }
bool has_empty(const std::vector<int64_t>& s) {
  return std::find(s.begin(), s.end(), 0) != s.end();
}

Values reshape(Site& s) {
  const std::vector<int64_t> to = s.sizes(s.y()), from = s.sizes(s.x(0));
  if (s.rank(s.y()) < 0) return {};
  if (s.rank(s.x(0)) == s.rank(s.y()) && from == to && open_sizes(to) == 0) return {s.x(0)};
  // a Reshape of a Reshape needs only the last shape
  const Node* before = s.producer(s.x(0));
  const ValueId x = before && before->is("Reshape") ? before->inputs[0] : s.x(0);
  if (has_empty(to)) return {};
  std::vector<int64_t> said;
  if (open_sizes(to) > 1) {
    // the sizes that stay where they are can be copied by 0
    if (!s.numbers(s.x(1), said) || s.node().i("allowzero", 0) != 0 || x == s.x(0)) return {};
    return {};
  }
  if (x == s.x(0) && s.numbers(s.x(1), said) && said == to && !s.node().has("allowzero")) return {};
  return {s.reshape(x, to)};
}

Values flatten(Site& s) {
  const std::vector<int64_t> to = s.sizes(s.y());
  if (to.size() != 2 || open_sizes(to) > 1 || has_empty(to)) return {};
  return {s.reshape(s.x(0), to)};
}

Values expand(Site& s) {
  const std::vector<int64_t> to = s.sizes(s.y()), from = s.sizes(s.x(0));
  if (s.rank(s.y()) < 0) return {};
  if (s.rank(s.x(0)) == s.rank(s.y()) && s.type(s.x(0)).shape == s.type(s.y()).shape &&
      open_sizes(to) == 0)
    return {s.x(0)};
  std::vector<int64_t> said;
  if (open_sizes(to) > 0 || (s.numbers(s.x(1), said) && said == to)) return {};
  return {s.call("Expand", {s.x(0), s.ints(to)})};
}

// One number everywhere.
Values constant_of_shape(Site& s) {
  const Tensor* t = s.node().tensor("value");
  const ValueId one = t ? s.tensor(t->reshaped({})) : s.scalar(0, DType::kFloat);
  const std::vector<int64_t> to = s.sizes(s.y());
  if (s.rank(s.y()) == 0) return {one};
  if (to.empty() || open_sizes(to) > 0) return {s.call("Expand", {one, s.x(0)})};
  return {s.call("Expand", {one, s.ints(to)})};
}

Values split(Site& s) {
  const int64_t rank = s.rank(s.x(0));
  int64_t axis = s.node().i("axis", 0), from = 0;
  if (rank < 1) return {};
  if (axis < 0) axis += rank;
  Values parts;
  for (size_t k = 0; k < s.node().outputs.size(); ++k) {
    const ValueId y = s.node().outputs[k];
    const int64_t size = y == kNone ? -1 : s.sizes(y)[size_t(axis)];
    if (size < 0) return {};
    parts.push_back(s.slice(s.x(0), axis, from, from + size));
    from += size;
  }
  return parts;
}

Values trilu(Site& s) {
  const std::vector<int64_t> sizes = s.sizes(s.x(0));
  std::vector<int64_t> k{0};
  if (sizes.size() < 2 || (s.has(1) && !s.numbers(s.x(1), k))) return {};
  const int64_t rows = sizes[sizes.size() - 2], columns = sizes.back();
  if (rows < 0 || columns < 0) return {};
  const bool upper = s.node().i("upper", 1) != 0;
  Tensor mask(DType::kBool, {rows, columns});
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      mask.as<bool>()[i * columns + j] = upper ? j - i >= k[0] : j - i <= k[0];
  return {s.call("Where", {s.tensor(mask), s.x(0), s.scalar(0, s.x(0))})};
}

// Inference: nothing is dropped.
Values dropout(Site& s) {
  const bool may_train = s.node().version >= 12 && s.has(2);
  if (may_train && !s.is_all(s.x(2), 0)) return {};
  const bool mask = s.node().outputs.size() > 1 && s.node().outputs[1] != kNone;
  if (!mask) return {s.x(0)};
  return {s.x(0), s.call("Equal", {s.x(0), s.x(0)})};
}

// Number of elements: known sizes times the open one.
Values size(Site& s) {
  const std::vector<int64_t> sizes = s.sizes(s.x(0));
  if (sizes.empty() || open_sizes(sizes) != 1) return {};
  int64_t known = 1, axis = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] < 0)
      axis = int64_t(d);
    else
      known *= sizes[d];
  }
  const ValueId open =
      s.call("Gather", {s.call("Shape", {s.x(0)}), s.constant_int(axis)}, {{"axis", int64_t(0)}});
  return {s.mul(open, s.constant_int(known))};
}

// start and end came in opset 15.
Values shape(Site& s) {
  const Node& n = s.node();
  const int64_t rank = s.rank(s.x(0));
  if (s.opset() >= 15 || rank < 0 || (!n.has("start") && !n.has("end"))) return {};
  auto place = [&](const char* key, int64_t otherwise) {
    const int64_t v = n.i(key, otherwise);
    return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank);
  };
  const int64_t from = place("start", 0), to = place("end", rank);
  const ValueId all = s.call("Shape", {s.x(0)});
  if (from == 0 && to == rank) return {all};
  return {s.slice(all, 0, from, std::max(from, to))};
}

Values global_average(Site& s) {
  const int64_t rank = s.rank(s.x(0));
  if (rank < 3) return {};
  std::vector<int64_t> axes;
  for (int64_t d = 2; d < rank; ++d) axes.push_back(d);
  if (s.opset() >= 18) return {s.call("ReduceMean", {s.x(0), s.ints(axes)})};
  return {s.call("ReduceMean", {s.x(0)}, {{"axes", axes}})};
}
Values global_max(Site& s) {
  const int64_t rank = s.rank(s.x(0));
  if (rank < 3) return {};
  std::vector<int64_t> axes;
  for (int64_t d = 2; d < rank; ++d) axes.push_back(d);
  if (s.opset() >= 18) return {s.call("ReduceMax", {s.x(0), s.ints(axes)})};
  return {s.call("ReduceMax", {s.x(0)}, {{"axes", axes}})};
}

}  // namespace

namespace {

// Two in a row are one, or none.
Values transpose(Site& s) {
  const Node* before = s.producer(s.x(0));
  if (!before || !before->is("Transpose")) return {};
  const std::vector<int64_t> second = s.node().ints("perm"), first = before->ints("perm");
  if (first.empty() || first.size() != second.size()) return {};
  std::vector<int64_t> perm;
  bool same = true;
  for (size_t d = 0; d < second.size(); ++d) {
    perm.push_back(first[size_t(second[d])]);
    same &= perm[d] == int64_t(d);
  }
  const ValueId x = before->inputs[0];
  return {same ? x : s.transpose(x, perm)};
}

}  // namespace

namespace {

// All of it is no Slice.
Values slice(Site& s) {
  const std::vector<int64_t> sizes = s.sizes(s.x(0));
  std::vector<int64_t> from, to, axes, steps;
  if (sizes.empty() || !s.numbers(s.x(1), from) || !s.numbers(s.x(2), to)) return {};
  if (s.has(3) && !s.numbers(s.x(3), axes)) return {};
  if (s.has(4) && !s.numbers(s.x(4), steps)) return {};
  for (size_t k = 0; k < from.size(); ++k) {
    int64_t axis = s.has(3) ? axes[k] : int64_t(k);
    if (axis < 0) axis += int64_t(sizes.size());
    const int64_t size = sizes[size_t(axis)];
    const bool all = from[k] == 0 && (to[k] == INT64_MAX || (size >= 0 && to[k] >= size)) &&
                     (!s.has(4) || steps[k] == 1);
    if (!all) return {};
  }
  return {s.x(0)};
}

}  // namespace

Rules shape_rules() {
  return {{"Reshape", "static_shape", reshape},
          {"Slice", "everything", slice},
          {"Transpose", "merged", transpose},
          {"Flatten", "static_shape", flatten},
          {"Expand", "static_shape", expand},
          {"ConstantOfShape", "fill", constant_of_shape},
          {"Split", "slices", split},
          {"Trilu", "mask", trilu},
          {"Dropout", "inference", dropout},
          {"Size", "rows", size},
          {"Shape", "sliced", shape},
          {"GlobalAveragePool", "reduce", global_average},
          {"GlobalMaxPool", "reduce", global_max}};
}

namespace {

// The training form of the layer in standard operators, step by step; what it saves is not read.
Values unroll(Site& s) {
  const Op* op = training_form(s.node(), s.context().ops);
  if (!op) return {};
  Values made = op->lower(s);
  made.resize(s.node().outputs.size(), kNone);
  return made;
}

}  // namespace

Rules recurrent_rules() {
  return {{"LSTM", "unroll", unroll}, {"GRU", "unroll", unroll}, {"RNN", "unroll", unroll}};
}

}  // namespace onnxtrain::portable
