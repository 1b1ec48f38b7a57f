// LinearRegressor and LinearClassifier with trainable weights.
#include "ops/ml/linear_weights.hpp"

namespace onnxtrain::ops {

namespace {

Tensor rows_tensor(const std::vector<float>& v, int64_t rows) {
  return Tensor::vector<float>(v).reshaped({rows, int64_t(v.size()) / rows});
}

std::vector<float> floats_of(const Tensor& t) { return {t.as<float>(), t.as<float>() + t.size()}; }

std::vector<std::pair<std::string, Tensor>> linear_weights(const std::vector<float>& w,
                                                           const std::vector<float>& bias,
                                                           int64_t rows) {
  if (rows < 1 || w.empty() || int64_t(w.size()) % rows) return {};
  std::vector<std::pair<std::string, Tensor>> out = {{"coefficients", rows_tensor(w, rows)}};
  if (!bias.empty()) out.emplace_back("intercepts", rows_tensor(bias, 1));
  return out;
}

// Two rows that are each other's negative: one classifier of two classes, written twice.
bool is_mirrored(const std::vector<float>& v) {
  const size_t half = v.size() / 2;
  if (v.size() % 2) return false;
  for (size_t k = 0; k < half; ++k)
    if (v[k] != -v[half + k]) return false;
  return true;
}

int64_t classifier_rows(const Node& n, int64_t features) {
  const int64_t weights = int64_t(n.floats("coefficients").size());
  const int64_t bias = int64_t(n.floats("intercepts").size());
  if (bias > 0) return bias;
  return features > 0 ? weights / features : 0;
}

// The row that both classes share, or no tie.
bool is_tied(const Node& n, int64_t rows) {
  return rows == 2 && is_mirrored(n.floats("coefficients")) && is_mirrored(n.floats("intercepts"));
}

std::vector<float> second_half(const std::vector<float>& v) {
  return {v.begin() + long(v.size() / 2), v.end()};
}

// [rows, targets]
ValueId scores(GradBuilder& b) {
  DType type = form_type(b);
  ValueId weights = b.transpose(weight_table(b, 1, {}, 0, type), {1, 0});
  ValueId y = b.call("MatMul", {feature_rows(b, b.shape(b.x(1))[1]), weights});
  return b.has(2) ? b.add(y, weight_table(b, 2, {}, 0, type)) : y;
}

}  // namespace

std::vector<std::pair<std::string, Tensor>> read_linear_regressor(const Node& n, int64_t) {
  return linear_weights(n.floats("coefficients"), n.floats("intercepts"), n.i("targets", 1));
}

std::vector<std::pair<std::string, Tensor>> read_linear_classifier(const Node& n,
                                                                   int64_t features) {
  std::vector<float> w = n.floats("coefficients"), bias = n.floats("intercepts");
  const int64_t rows = classifier_rows(n, features);
  const int64_t labels = labels_of(n, "classlabels_ints", "classlabels_strings").count();
  if (rows == 1 && labels != 2) return {};  // one score: its label follows a rule of its own
  if (labels > 0 && rows > labels) return {};
  if (labels == 2 && is_tied(n, rows))
    return linear_weights(second_half(w), bias.empty() ? bias : second_half(bias), 1);
  return linear_weights(w, bias, rows);
}

void write_linear(Node& n, const std::vector<Tensor>& values) {
  const char* names[] = {"coefficients", "intercepts"};
  for (size_t k = 0; k < values.size() && k < 2; ++k) {
    std::vector<float> v = floats_of(values[k]);
    if (n.floats(names[k]).size() == 2 * v.size()) {  // tied: the first row is the negative
      std::vector<float> both;
      for (float f : v) both.push_back(-f);
      both.insert(both.end(), v.begin(), v.end());
      v = std::move(both);
    }
    n.attrs[names[k]] = std::move(v);
  }
}

std::vector<ValueId> linear_regressor_form(GradBuilder& b) {
  return {to_float(b, post_form(b, post_of(b.node()), scores(b)))};
}

// With the weights as inputs. Two classes with one row of weights and logistic probabilities are
// written as a Softmax: the same numbers, and a loss finds the scores behind it.
std::vector<ValueId> linear_classifier_form(GradBuilder& b) {
  const Node& n = b.node();
  ValueId y = scores(b);
  Post post = post_of(n);
  if (b.shape(b.x(1))[0] == 1) {
    if (post == Post::kLogistic) {
      y = b.mul(y, b.scalar(0.5, y));
      post = Post::kSoftmax;
    }
    y = b.call("Concat", {b.neg(y), y}, {{"axis", int64_t(1)}});
  }
  ValueId scores = to_float(b, post_form(b, post, y));
  if (n.outputs.empty() || n.outputs[0] == kNone) return {kNone, scores};
  ValueId best = b.call("ArgMax", {scores}, {{"axis", int64_t(1)}, {"keepdims", int64_t(0)}});
  return {label_form(b, labels_of(n, "classlabels_ints", "classlabels_strings"), best), scores};
}

}  // namespace onnxtrain::ops
