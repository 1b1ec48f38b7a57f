// Shared parts of the ai.onnx.ml operators.
#include "ops/ml/features.hpp"

#include <algorithm>
#include <cmath>

namespace onnxtrain::ops {

Rows rows_of(const Shape& s, const char* op) {
  if (s.empty() || s.size() > 2)
    model_error("OT1130",
                cat(op, " of shape ", to_string(s), ", expected [features] or [rows, features]"));
  return s.size() == 1 ? Rows{1, s[0]} : Rows{s[0], s[1]};
}

void check_number(DType t, const char* op) {
  if (t != DType::kFloat && t != DType::kDouble && t != DType::kInt64 && t != DType::kInt32)
    unsupported_dtype(t, op);
}

Post post_of(const Node& n) {
  std::string s = n.s("post_transform", "NONE");
  if (s == "NONE") return Post::kNone;
  if (s == "SOFTMAX") return Post::kSoftmax;
  if (s == "LOGISTIC") return Post::kLogistic;
  if (s == "SOFTMAX_ZERO") return Post::kSoftmaxZero;
  if (s == "PROBIT") return Post::kProbit;
  model_error("OT1106", cat("post_transform '", s, "' is unknown"));
}

namespace {

float logistic(float v) {
  float p = 1.f / (1.f + std::exp(-std::fabs(v)));
  return v < 0 ? 1.f - p : p;
}

// Winitzki's approximation of the inverse error function, as in the ONNX reference.
float probit(float v) {
  float x = 2 * v - 1, sign = x < 0 ? -1.f : 1.f;
  x = (1 - x) * (1 + x);
  if (x == 0) return 0;
  float log = std::log(x);
  float a = 2.f / (3.14159265358979f * 0.147f) + 0.5f * log, b = 1.f / 0.147f * log;
  return 1.41421356f * sign * std::sqrt(-a + std::sqrt(a * a - b));
}

void softmax(float* s, int64_t n, bool zeros_stay) {
  float top = s[0], sum = 0;
  for (int64_t k = 1; k < n; ++k) top = std::max(top, s[k]);
  float scale = std::exp(-top);
  for (int64_t k = 0; k < n; ++k) {
    bool zero = zeros_stay && std::fabs(s[k]) <= 1e-7f;
    s[k] = zero ? s[k] * scale : std::exp(s[k] - top);
    sum += s[k];
  }
  for (int64_t k = 0; k < n; ++k) s[k] = sum == 0 ? 0.5f : s[k] / sum;
}

}  // namespace

void apply_post(Post p, float* scores, int64_t n) {
  if (n == 0) return;
  switch (p) {
    case Post::kNone:
      return;
    case Post::kSoftmax:
      return softmax(scores, n, false);
    case Post::kSoftmaxZero:
      return softmax(scores, n, true);
    case Post::kLogistic:
      std::transform(scores, scores + n, scores, logistic);
      return;
    case Post::kProbit:
      std::transform(scores, scores + n, scores, probit);
      return;
  }
}

int64_t write_scores(Post p, const float* scores, int64_t n, int add_second, float* out) {
  if (n != 1 || add_second < 0 || p == Post::kProbit) {
    std::copy_n(scores, n, out);
    apply_post(p, out, n);
    return n;
  }
  float s = scores[0];
  bool mirrored = add_second >= 2 || p == Post::kLogistic;
  out[0] = mirrored ? -s : 1 - s;
  out[1] = s;
  if (mirrored) apply_post(p, out, 2);
  return 2;
}

DType form_type(const GradBuilder& b) {
  return b.dtype(b.x(0)) == DType::kDouble ? DType::kDouble : DType::kFloat;
}

ValueId feature_rows(GradBuilder& b, int64_t features) {
  ValueId x = b.x(0);
  if (b.dtype(x) != form_type(b)) x = b.call("Cast", {x}, {{"to", int64_t(form_type(b))}});
  return b.call("Reshape", {x, b.constant_ints({-1, features})});
}

ValueId weight_table(GradBuilder& b, int i, const std::vector<float>& v, int64_t columns,
                     DType type) {
  if (!b.has(i)) return float_table(b, v, columns, type);
  if (type == DType::kFloat) return b.x(i);
  return b.call("Cast", {b.x(i)}, {{"to", int64_t(type)}});
}

ValueId label_form(GradBuilder& b, const Labels& l, ValueId index) {
  if (l.count() == 0) return index;
  Tensor t =
      l.use_strings() ? Tensor::vector<std::string>(l.strings) : Tensor::vector<int64_t>(l.ints);
  return b.call("Gather", {b.tensor(std::move(t)), index}, {{"axis", int64_t(0)}});
}

ValueId float_table(GradBuilder& b, const std::vector<float>& v, int64_t columns, DType type) {
  OT_ASSERT(columns > 0);
  Shape shape = {int64_t(v.size()) / columns, columns};
  if (type != DType::kDouble) return b.tensor(Tensor::vector<float>(v).reshaped(shape));
  return b.tensor(Tensor::vector<double>(std::vector<double>(v.begin(), v.end())).reshaped(shape));
}

ValueId to_float(GradBuilder& b, ValueId v) {
  return b.dtype(v) == DType::kFloat ? v : b.call("Cast", {v}, {{"to", int64_t(DType::kFloat)}});
}

namespace {

ValueId probit_form(GradBuilder& b, ValueId v) {
  auto num = [&](double n) { return b.scalar(n, v); };
  ValueId x = b.sub(b.mul(v, num(2)), num(1));
  ValueId sign = b.call("Where", {b.call("Less", {x, num(0)}), num(-1), num(1)});
  ValueId in = b.mul(b.sub(num(1), x), b.add(num(1), x));
  ValueId zero = b.call("Equal", {in, num(0)});
  ValueId log = b.call("Log", {b.call("Where", {zero, num(0.5), in})});
  ValueId p = b.add(b.mul(log, num(0.5)), num(2 / (3.14159265358979 * 0.147)));
  ValueId root = b.call("Sqrt", {b.sub(b.mul(p, p), b.mul(log, num(1 / 0.147)))});
  ValueId y = b.mul(b.mul(sign, num(1.41421356)), b.call("Sqrt", {b.sub(root, p)}));
  return b.call("Where", {zero, num(0), y});
}

// Zeros stay where they are.
ValueId softmax_zero_form(GradBuilder& b, ValueId s) {
  ValueId top = b.own("Detach", {b.call_n("TopK", {s, b.constant_ints({1})}, 2)[0]});
  ValueId zero = b.call("LessOrEqual", {b.call("Abs", {s}), b.scalar(1e-7, s)});
  ValueId e = b.call("Where",
                     {zero, b.mul(s, b.call("Exp", {b.neg(top)})), b.call("Exp", {b.sub(s, top)})});
  return b.div(e, b.reduce_sum(e, {1}));
}

}  // namespace

ValueId post_form(GradBuilder& b, Post p, ValueId scores) {
  switch (p) {
    case Post::kSoftmax:
      return b.call("Softmax", {scores}, {{"axis", int64_t(1)}});
    case Post::kSoftmaxZero:
      return softmax_zero_form(b, scores);
    case Post::kLogistic:
      return b.call("Sigmoid", {scores});
    case Post::kProbit:
      return probit_form(b, scores);
    case Post::kNone:
      break;
  }
  return scores;
}

std::vector<ValueId> with_label(GradBuilder& b, ValueId scores) {
  const Node& n = b.node();
  if (n.outputs.empty() || n.outputs[0] == kNone) return {kNone, scores};
  Node label = n;
  label.outputs.clear();
  ValueId made = b.graph().add_node(std::move(label), 1)[0];
  b.graph().value(made).type = b.type(n.outputs[0]);
  return {made, scores};
}

Labels labels_of(const Node& n, const char* ints, const char* strings) {
  Labels l;
  l.ints = n.ints(ints);
  l.strings = n.strings(strings);
  if (!l.ints.empty() && !l.strings.empty())
    model_error("OT1106", cat("both ", ints, " and ", strings, " are given"));
  return l;
}

void write_label(const Labels& l, void* out, int64_t row, int64_t index) {
  if (!out) return;
  if (l.use_strings()) {
    static_cast<std::string*>(out)[row] = l.strings[size_t(index)];
  } else {
    static_cast<int64_t*>(out)[row] =
        index < int64_t(l.ints.size()) ? l.ints[size_t(index)] : index;
  }
}

}  // namespace onnxtrain::ops
