// Which operators of ai.onnx.ml have weights in their attributes.
#include "op/attribute_weights.hpp"

#include "ops/ml/linear_weights.hpp"
#include "ops/ml/svm_attributes.hpp"
#include "ops/ml/tree_weights.hpp"

namespace onnxtrain {

const AttributeWeights* attribute_weights_of(const Node& n) {
  using namespace ops;
  static const std::map<std::string, AttributeWeights, std::less<>> kOperators = {
      {"LinearRegressor", {read_linear_regressor, write_linear, linear_regressor_form}},
      {"LinearClassifier", {read_linear_classifier, write_linear, linear_classifier_form}},
      {"SVMRegressor", {read_svm_regressor, write_svm, svm_regressor_form}},
      {"SVMClassifier", {read_svm_classifier, write_svm, svm_classifier_form}},
      {"TreeEnsembleRegressor", {read_tree_regressor, write_tree_regressor, tree_regressor_form}},
      {"TreeEnsembleClassifier",
       {read_tree_classifier, write_tree_classifier, tree_classifier_form}}};
  if (n.domain != kMlDomain) return nullptr;
  auto it = kOperators.find(n.op);
  return it == kOperators.end() ? nullptr : &it->second;
}

}  // namespace onnxtrain
