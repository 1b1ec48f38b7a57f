// The weights of linear models that can be trained: coefficients and intercepts.
#pragma once
#include "ops/ml/features.hpp"

namespace onnxtrain::ops {

std::vector<std::pair<std::string, Tensor>> read_linear_regressor(const Node& n, int64_t features);
std::vector<std::pair<std::string, Tensor>> read_linear_classifier(const Node& n, int64_t features);
void write_linear(Node& n, const std::vector<Tensor>& values);
// With coefficients and intercepts as inputs behind x.
std::vector<ValueId> linear_regressor_form(GradBuilder& b);
std::vector<ValueId> linear_classifier_form(GradBuilder& b);

}  // namespace onnxtrain::ops
