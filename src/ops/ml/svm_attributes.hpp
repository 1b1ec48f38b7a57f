// Support vector machines of ai.onnx.ml: what their attributes say, and their form in standard
// operators, by which they are differentiated.
#pragma once
#include "ops/ml/features.hpp"

namespace onnxtrain::ops {

enum class KernelType { kLinear, kPoly, kRbf, kSigmoid };

struct Svm {
  Rows x;
  KernelType kernel = KernelType::kLinear;
  float gamma = 0, coef0 = 0, degree = 0;
  std::vector<float> coefficients, vectors, rho, prob_a, prob_b;
  std::vector<int64_t> per_class, starts;
  int64_t supports = 0, classes = 1;
  Labels labels;
  Post post = Post::kNone;
  bool one_class = false, all_positive = false;
};

Svm svm_regressor_of(const Node& n, const TensorType& x);
Svm svm_classifier_of(const Node& n, const TensorType& x);
// How many numbers the second output of the classifier has per row.
int64_t svm_columns(const Svm& s);

// Inputs behind x, where they are given: coefficients, rho, support_vectors (AttributeWeights).
std::vector<ValueId> svm_regressor_form(GradBuilder& b);
std::vector<ValueId> svm_classifier_form(GradBuilder& b);

// svm_weights.cpp
std::vector<std::pair<std::string, Tensor>> read_svm_regressor(const Node& n, int64_t features);
std::vector<std::pair<std::string, Tensor>> read_svm_classifier(const Node& n, int64_t features);
void write_svm(Node& n, const std::vector<Tensor>& values);

}  // namespace onnxtrain::ops
