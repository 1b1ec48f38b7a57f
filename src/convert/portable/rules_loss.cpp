// Losses over labels: LogSoftmax times one-hot rows, made by comparing labels with class numbers.
#include <numeric>

#include "convert/portable/rules.hpp"

namespace onnxtrain::portable {

namespace {

using Values = std::vector<ValueId>;

// 1 where the label is the class; how many classes there are is known while the step runs (rows
// compared with each other).
ValueId open_one_hot(Site& s, ValueId labels, ValueId scores, DType type) {
  const ValueId classes =
      s.call("Gather", {s.call("Shape", {scores}), s.constant_int(1)}, {{"axis", int64_t(0)}});
  const ValueId all = s.call("Range", {s.constant_int(0), classes, s.constant_int(1)});
  std::vector<int64_t> shape(size_t(s.need_rank(scores)), 1);
  shape[1] = -1;
  const ValueId at = s.unsqueeze(s.cast(labels, DType::kInt64), {1});
  return s.cast(s.call("Equal", {at, s.call("Reshape", {all, s.ints(shape)})}), type);
}

// [1,C,1,...]: as many dimensions as the scores.
ValueId along_classes(Site& s, ValueId v, int64_t classes, int64_t rank) {
  std::vector<int64_t> shape(size_t(rank), 1);
  shape[1] = classes;
  return s.reshape(v, shape);
}

struct Labelled {
  ValueId loss, one_hot;
};

// Ruling G16: where every label is ignored the mean is 0.
ValueId divided(Site& s, ValueId sum, ValueId total, DType type) {
  const ValueId none = s.call("Equal", {total, s.scalar(0, type)});
  return s.div(sum, s.call("Where", {none, s.scalar(1, type), total}));
}

ValueId all_of(Site& s, ValueId v, size_t rank) {
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  return axes.empty() ? v : s.reduce_sum(v, axes, false);
}

// From log-probabilities [N,C,...] and labels [N,...].
Values from_log(Site& s, ValueId log, ValueId labels, ValueId weights) {
  const std::vector<int64_t> shape = s.sizes(log);
  if (shape.size() < 2) return {};
  const DType type = s.dtype(log);
  ValueId hot =
      shape[1] < 0 ? open_one_hot(s, labels, log, type) : one_hot(s, labels, shape[1], 1, type);
  if (s.node().has("ignore_index")) {
    const ValueId ignored = s.tensor(Tensor::scalar<int64_t>(s.node().i("ignore_index", 0)));
    const ValueId same = s.call("Equal", {s.cast(labels, DType::kInt64), ignored});
    const ValueId used = s.cast(s.call("Not", {same}), type);
    hot = s.mul(hot, s.unsqueeze(used, {1}));
  }
  if (weights != kNone)
    hot = s.mul(hot, along_classes(s, weights, shape[1], int64_t(shape.size())));
  const ValueId each = s.neg(s.reduce_sum(s.mul(hot, log), {1}, false));
  const std::string reduction = s.node().s("reduction", "mean");
  if (reduction == "none") return {each};
  const ValueId sum = all_of(s, each, shape.size() - 1);
  return {reduction == "sum" ? sum : divided(s, sum, all_of(s, hot, shape.size()), type)};
}

Values cross_entropy(Site& s) {
  const ValueId log = s.call("LogSoftmax", {s.x(0)}, {{"axis", int64_t(1)}});
  Values loss = from_log(s, log, s.x(1), s.has(2) ? s.x(2) : kNone);
  if (!loss.empty()) loss.push_back(log);
  return loss;
}
Values negative_log_likelihood(Site& s) {
  return from_log(s, s.x(0), s.x(1), s.has(2) ? s.x(2) : kNone);
}

Values one_hot_rule(Site& s) {
  std::vector<int64_t> depth;
  const Tensor* given = s.constant(s.x(1));
  const Tensor* values = s.constant(s.x(2));
  if (!given || given->size() != 1 || !values || values->size() != 2) return {};
  const int64_t classes = int64_t(given->to_doubles()[0]), rank = s.need_rank(s.x(0));
  int64_t axis = s.node().i("axis", -1);
  if (axis < 0) axis += rank + 1;
  const std::vector<double> v = values->to_doubles();
  const DType type = values->dtype();
  const ValueId at = s.cast(s.x(0), DType::kInt64);
  // from the end when negative
  const ValueId zero = s.constant_int(0);
  const ValueId back =
      s.call("Where", {s.call("Less", {at, zero}), s.add(at, s.constant_int(classes)), at});
  ValueId hot = one_hot(s, back, classes, axis, type);
  if (v[1] - v[0] != 1) hot = s.mul(hot, s.scalar(v[1] - v[0], type));
  if (v[0] != 0) hot = s.add(hot, s.scalar(v[0], type));
  return {hot};
}

}  // namespace

ValueId one_hot(Site& s, ValueId labels, int64_t classes, int64_t axis, DType type) {
  const int64_t rank = s.need_rank(labels);
  std::vector<int64_t> numbers(static_cast<size_t>(classes)), shape(size_t(rank) + 1, 1);
  std::iota(numbers.begin(), numbers.end(), 0);
  shape[size_t(axis)] = classes;
  const ValueId all = s.tensor(Tensor::vector<int64_t>(numbers).reshaped(shape));
  const ValueId at = s.unsqueeze(s.cast(labels, DType::kInt64), {axis});
  return s.cast(s.call("Equal", {at, all}), type);
}

Rules loss_rules() {
  return {{"SoftmaxCrossEntropyLoss", "labels", cross_entropy},
          {"NegativeLogLikelihoodLoss", "labels", negative_log_likelihood},
          {"OneHot", "one_hot", one_hot_rule}};
}

}  // namespace onnxtrain::portable
