// Operators that pick or rearrange elements, by Gather, Slice and Transpose alone.
#include <algorithm>
#include <limits>
#include <numeric>

#include "convert/portable/rules.hpp"

namespace onnxtrain::portable {

namespace {

using Values = std::vector<ValueId>;

// ---------------------------------------------------------------- GatherND, ScatterND
// Numbers of rows from tuples of indices into the leading dimensions; kNone when a size is open.
ValueId row_numbers(Site& s, ValueId tuples, const std::vector<int64_t>& sizes, size_t depth) {
  const int64_t axis = s.rank(tuples) - 1;
  ValueId sum = kNone;
  int64_t stride = 1;
  for (size_t d = depth; d-- > 0;) {
    if (sizes[d] < 0 && d > 0) return kNone;
    ValueId at = s.squeeze(s.slice(tuples, axis, int64_t(d), int64_t(d) + 1), {axis});
    // the first size may be open where nothing counts from its end
    if (sizes[d] >= 0) at = wrapped_index(s, at, sizes[d]);
    if (stride > 1) at = s.mul(at, s.constant_int(stride));
    sum = sum == kNone ? at : s.add(sum, at);
    stride *= sizes[d];
  }
  return sum;
}

Values gather_nd(Site& s) {
  const std::vector<int64_t> data = s.sizes(s.x(0)), at = s.sizes(s.x(1));
  if (s.node().i("batch_dims", 0) != 0 || data.empty() || at.empty() || at.back() < 1) return {};
  const size_t depth = size_t(at.back());
  if (depth > data.size()) return {};
  std::vector<int64_t> flat{-1};
  for (size_t d = depth; d < data.size(); ++d) {
    if (data[d] < 0) return {};
    flat.push_back(data[d]);
  }
  const ValueId rows = row_numbers(s, s.x(1), data, depth);
  if (rows == kNone) return {};
  const ValueId table = depth == 1 ? s.x(0) : s.reshape(s.x(0), flat);
  return {s.call("Gather", {table, rows}, {{"axis", int64_t(0)}})};
}

// Rows added to a table whose number of rows is open. Runtimes that scatter in parallel (IREE) lose
// rows where an index occurs twice; a MatMul does not.
Values scatter_open_rows(Site& s, const std::vector<int64_t>& data) {
  if (s.rank(s.x(1)) != 2) return {};
  int64_t width = 1;
  for (size_t d = 1; d < data.size(); ++d) {
    if (data[d] < 0) return {};
    width *= data[d];
  }
  const ValueId rows =
      s.call("Gather", {s.call("Shape", {s.x(0)}), s.constant_int(0)}, {{"axis", int64_t(0)}});
  const ValueId all = s.call("Range", {s.constant_int(0), rows, s.constant_int(1)});
  const ValueId at = s.squeeze(s.cast(s.x(1), DType::kInt64), {1});
  const ValueId from_end = s.call("Less", {at, s.constant_int(0)});
  const ValueId row = s.call("Where", {from_end, s.add(at, rows), at});
  const ValueId hit = s.call("Equal", {s.unsqueeze(all, {1}), s.unsqueeze(row, {0})});
  const ValueId sum = s.call(
      "MatMul", {s.cast(hit, s.dtype(s.x(2))), s.call("Reshape", {s.x(2), s.ints({-1, width})})});
  std::vector<int64_t> shape = data;
  shape[0] = -1;
  const ValueId v = s.call("Reshape", {sum, s.ints(shape)});
  return {s.is_all(s.x(0), 0) ? v : s.add(s.x(0), v)};
}

Values scatter_nd(Site& s) {
  const std::vector<int64_t> data = s.sizes(s.x(0)), at = s.sizes(s.x(1));
  if (s.node().s("reduction", "none") != "add" || s.context().fast_scatter) return {};
  if (data.empty() || at.empty() || at.back() < 1 || size_t(at.back()) > data.size()) return {};
  const size_t depth = size_t(at.back());
  int64_t rows = 1;
  for (size_t d = 0; d < depth; ++d) rows = data[d] < 0 ? -1 : rows * data[d];
  if (rows < 0) return depth == 1 ? scatter_open_rows(s, data) : Values{};
  const ValueId numbers = row_numbers(s, s.x(1), data, depth);
  ValueId v = numbers == kNone ? kNone : scatter_rows(s, s.x(2), numbers, 0, rows);
  if (v == kNone) return {};
  if (depth > 1) v = s.reshape(v, data);
  return {s.is_all(s.x(0), 0) ? v : s.add(s.x(0), v)};
}

// ---------------------------------------------------------------- GatherElements
constexpr int64_t kMostElements = int64_t(1) << 26;

// y[.., j, ..] = data[.., index[.., j, ..], ..]: the one that the index names, among all.
Values gather_elements(Site& s) {
  const std::vector<int64_t> data = s.sizes(s.x(0)), at = s.sizes(s.x(1));
  if (data.empty() || at.size() != data.size() || s.context().fast_scatter) return {};
  int64_t axis = s.node().i("axis", 0), count = 1;
  if (axis < 0) axis += int64_t(data.size());
  const int64_t size = data[size_t(axis)];
  if (size < 0) return {};
  for (size_t d = 0; d < data.size(); ++d) {
    if (int64_t(d) != axis && data[d] != at[d]) return {};
    count *= std::max<int64_t>(1, at[d]);
  }
  if (count * size > kMostElements) return {};
  const ValueId index = wrapped_index(s, s.x(1), size);
  const ValueId hit = s.cast(one_hot(s, index, size, axis + 1, DType::kFloat), DType::kBool);
  const ValueId all = s.unsqueeze(s.x(0), {axis});
  const ValueId picked = s.call("Where", {hit, all, s.scalar(0, s.x(0))});
  return {s.reduce_sum(picked, {axis + 1}, false)};
}

// ---------------------------------------------------------------- pixels
Values depth_to_space(Site& s) {
  std::vector<int64_t> x = s.sizes(s.x(0));
  const int64_t b = s.node().i("blocksize", 1);
  if (x.size() != 4 || x[1] < 0 || x[2] < 0 || x[3] < 0) return {};
  const bool crd = s.node().s("mode", "DCR") == "CRD";
  const int64_t c = x[1] / (b * b);
  const ValueId split = crd ? s.reshape(s.x(0), {x[0], c, b, b, x[2], x[3]})
                            : s.reshape(s.x(0), {x[0], b, b, c, x[2], x[3]});
  const std::vector<int64_t> perm =
      crd ? std::vector<int64_t>{0, 1, 4, 2, 5, 3} : std::vector<int64_t>{0, 3, 4, 1, 5, 2};
  return {s.reshape(s.transpose(split, perm), {x[0], c, x[2] * b, x[3] * b})};
}

Values space_to_depth(Site& s) {
  std::vector<int64_t> x = s.sizes(s.x(0));
  const int64_t b = s.node().i("blocksize", 1);
  if (x.size() != 4 || x[1] < 0 || x[2] < 0 || x[3] < 0) return {};
  const ValueId split = s.reshape(s.x(0), {x[0], x[1], x[2] / b, b, x[3] / b, b});
  return {
      s.reshape(s.transpose(split, {0, 3, 5, 1, 2, 4}), {x[0], x[1] * b * b, x[2] / b, x[3] / b})};
}

// ---------------------------------------------------------------- parts of a split
Values sequence_at(Site& s) {
  const Node* found = s.producer(s.x(0));
  std::vector<int64_t> at, sizes;
  if (!found || !found->is("SplitToSequence") || !s.numbers(s.x(1), at)) return {};
  const Node split = *found;
  const std::vector<int64_t> x = s.sizes(split.inputs[0]);
  if (x.empty()) return {};
  int64_t axis = split.i("axis", 0);
  if (axis < 0) axis += int64_t(x.size());
  const int64_t whole = x[size_t(axis)];
  if (whole < 0) return {};
  const bool given = split.inputs.size() > 1 && split.inputs[1] != kNone;
  std::vector<int64_t> said{1};
  if (given && !s.numbers(split.inputs[1], said)) return {};
  if (given && s.rank(split.inputs[1]) == 1) {
    sizes = said;
  } else {
    for (int64_t from = 0; from < whole; from += said[0])
      sizes.push_back(std::min(said[0], whole - from));
  }
  const int64_t k = at[0] < 0 ? at[0] + int64_t(sizes.size()) : at[0];
  if (k < 0 || k >= int64_t(sizes.size())) return {};
  const int64_t from = std::accumulate(sizes.begin(), sizes.begin() + k, int64_t(0));
  const ValueId part = s.slice(split.inputs[0], axis, from, from + sizes[size_t(k)]);
  return {given || split.i("keepdims", 1) != 0 ? part : s.squeeze(part, {axis})};
}

// ---------------------------------------------------------------- pads
// From opset 18 on, pads may be of some axes only.
// The same where amounts are computed while the step runs: 0 at the other axes.
Values open_pad(Site& s, const std::vector<int64_t>& axes, int64_t rank) {
  std::vector<ValueId> all(size_t(2 * rank), kNone);
  for (size_t k = 0; k < all.size(); ++k) all[k] = s.ints({0});
  auto amount = [&](size_t k) {
    return s.call("Gather", {s.x(1), s.ints({int64_t(k)})}, {{"axis", int64_t(0)}});
  };
  for (size_t k = 0; k < axes.size(); ++k) {
    const size_t d = size_t(axes[k] < 0 ? axes[k] + rank : axes[k]);
    all[d] = amount(k);
    all[d + size_t(rank)] = amount(k + axes.size());
  }
  std::vector<ValueId> in{s.x(0), s.call("Concat", all, {{"axis", int64_t(0)}})};
  if (s.has(2)) in.push_back(s.x(2));
  return {s.call("Pad", in, {{"mode", s.node().s("mode", "constant")}})};
}

Values pad_axes(Site& s) {
  std::vector<int64_t> pads, axes;
  const int64_t rank = s.rank(s.x(0));
  if (rank < 0 || !s.has(3) || !s.numbers(s.x(3), axes)) return {};
  if (!s.numbers(s.x(1), pads)) return open_pad(s, axes, rank);
  std::vector<int64_t> all(size_t(2 * rank), 0);
  for (size_t k = 0; k < axes.size(); ++k) {
    const size_t d = size_t(axes[k] < 0 ? axes[k] + rank : axes[k]);
    all[d] = pads[k];
    all[d + size_t(rank)] = pads[k + axes.size()];
  }
  std::vector<ValueId> in{s.x(0), s.ints(all)};
  if (s.has(2)) in.push_back(s.x(2));
  return {s.call("Pad", in, {{"mode", s.node().s("mode", "constant")}})};
}

// Negative amounts cut: not every runtime takes them.
Values pad_cuts(Site& s) {
  std::vector<int64_t> pads;
  if (!s.has(1) || s.has(3) || !s.numbers(s.x(1), pads)) return {};
  if (s.node().s("mode", "constant") != "constant") return {};
  if (std::none_of(pads.begin(), pads.end(), [](int64_t p) { return p < 0; })) return {};
  const size_t n = pads.size() / 2;
  std::vector<int64_t> from, to, axes(n);
  std::iota(axes.begin(), axes.end(), int64_t(0));
  for (size_t k = 0; k < n; ++k) {
    from.push_back(std::max<int64_t>(0, -pads[k]));
    to.push_back(pads[n + k] < 0 ? pads[n + k] : std::numeric_limits<int64_t>::max());
  }
  const ValueId cut = s.call("Slice", {s.x(0), s.ints(from), s.ints(to), s.ints(axes)});
  for (int64_t& p : pads) p = std::max<int64_t>(0, p);
  if (std::all_of(pads.begin(), pads.end(), [](int64_t p) { return p == 0; })) return {cut};
  std::vector<ValueId> in = {cut, s.ints(pads)};
  if (s.has(2)) in.push_back(s.x(2));
  return {s.call("Pad", in)};
}

Values pad(Site& s) {
  Values v = pad_axes(s);
  return v.empty() ? pad_cuts(s) : v;
}

// ---------------------------------------------------------------- statistics of images
Values instance_norm(Site& s) {
  const int64_t rank = s.rank(s.x(0));
  const std::vector<int64_t> scale = s.sizes(s.x(1));
  if (rank < 3 || scale.size() != 1 || scale[0] < 0) return {};
  std::vector<int64_t> axes, shape(size_t(rank), 1);
  for (int64_t d = 2; d < rank; ++d) axes.push_back(d);
  shape[1] = scale[0];
  auto mean = [&](ValueId v) {
    if (s.opset() >= 18) return s.call("ReduceMean", {v, s.ints(axes)});
    return s.call("ReduceMean", {v}, {{"axes", axes}});
  };
  const ValueId centred = s.sub(s.x(0), mean(s.x(0)));
  const ValueId variance = mean(s.mul(centred, centred));
  const ValueId epsilon = s.scalar(double(s.node().f("epsilon", 1e-5f)), s.x(0));
  const ValueId unit = s.div(centred, s.call("Sqrt", {s.add(variance, epsilon)}));
  return {s.add(s.mul(unit, s.reshape(s.x(1), shape)), s.reshape(s.x(2), shape))};
}

}  // namespace

Rules index_rules() {
  return {{"GatherND", "rows", gather_nd},
          {"ScatterND", "rows", scatter_nd},
          {"GatherElements", "one_hot", gather_elements},
          {"DepthToSpace", "transpose", depth_to_space},
          {"SpaceToDepth", "transpose", space_to_depth},
          {"SequenceAt", "slices", sequence_at},
          {"Pad", "all_axes", pad},
          {"InstanceNormalization", "statistics", instance_norm}};
}

}  // namespace onnxtrain::portable
