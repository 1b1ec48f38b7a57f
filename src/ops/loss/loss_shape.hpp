// Shared by SoftmaxCrossEntropyLoss, NegativeLogLikelihoodLoss and their gradients: labels,
// weights, reductions.
#pragma once
#include "op/grad_builder.hpp"
#include "ops/common/expr.hpp"
#include "ops/common/rows_shape.hpp"

namespace onnxtrain::ops {

enum class Reduction { kNone, kSum, kMean };

struct LossInfo {
  Reduction reduction = Reduction::kMean;
  bool has_ignore = false;
  int64_t ignore = 0;
  Rows rows;  // [N][classes][d1*...]: a sample is a row
  // attributes; a model error on a wrong one
  explicit LossInfo(const Node& n);
};
// Checks scores [N,C,d...], labels [N,d...], weights [C]; `at` is the index of the scores.
void check_loss_inputs(ShapeCtx& c, int at);
Shape labels_shape(const Shape& scores);

// A data error that names the first label outside 0..classes-1.
void check_labels(const LossInfo& l, const int64_t* labels);

// Labels as int64, weights applied: w[i] = 0 for ignored samples (label 0 then). Throws a data
// error on a label outside 0..classes-1. Returns the sum of the weights.
template <class T>
double read_labels(const LossInfo& l, const void* labels, bool is_int64, const T* weights,
                   int64_t* out, double* w) {
  int64_t n = l.rows.count();
  for (int64_t i = 0; i < n; ++i)
    out[i] =
        is_int64 ? static_cast<const int64_t*>(labels)[i] : static_cast<const int32_t*>(labels)[i];
  check_labels(l, out);
  double total = 0;
  for (int64_t i = 0; i < n; ++i) {
    bool ignored = l.has_ignore && out[i] == l.ignore;
    if (ignored) out[i] = 0;
    w[i] = ignored ? 0.0 : weights ? double(compute_t<T>(weights[out[i]])) : 1.0;
    total += w[i];
  }
  return total;
}

// loss per sample in `each` (of C) -> the output in T
template <class T, class C>
void reduce_loss(const LossInfo& l, const C* each, double weight_sum, T* out) {
  int64_t n = l.rows.count();
  if (l.reduction == Reduction::kNone) {
    for (int64_t i = 0; i < n; ++i) out[i] = T(each[i]);
    return;
  }
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += double(each[i]);
  // everything ignored: no loss (ruling G16)
  if (l.reduction == Reduction::kMean) sum = weight_sum == 0 ? 0 : sum / weight_sum;
  *out = T(C(sum));
}

// The factor of each sample's gradient: weight and incoming gradient; in place of w.
template <class T>
void scale_gradients(const LossInfo& l, const T* dloss, double weight_sum, double* w) {
  int64_t n = l.rows.count();
  if (l.reduction == Reduction::kNone) {
    for (int64_t i = 0; i < n; ++i) w[i] *= double(compute_t<T>(dloss[i]));
    return;
  }
  double f = double(compute_t<T>(*dloss));
  if (l.reduction == Reduction::kMean) f = weight_sum == 0 ? 0 : f / weight_sum;
  for (int64_t i = 0; i < n; ++i) w[i] *= f;
}

// Lowering: per-sample factor [N,1,d...] and one-hot labels [N,C,d...] of the type of `x`.
struct LoweredLabels {
  Expr factor, one_hot;
};
// The gradient of the class weights, from the log probabilities [N,C,d...] and the loss.
ValueId weights_grad(GradBuilder& b, ValueId dloss, ValueId loss, ValueId log_p, ValueId labels,
                     ValueId weights);
LoweredLabels lower_labels(GradBuilder& b, Expr dloss, Expr x, ValueId labels, ValueId weights);

}  // namespace onnxtrain::ops
