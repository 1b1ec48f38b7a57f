// Leaves of tree ensembles as weights: the structure is fixed, the values of the leaves are
// trained.
#pragma once
#include "ops/ml/tree_walk.hpp"

namespace onnxtrain::ops {

// Rows are the leaves in the order of the nodes, columns the targets; base values where there are.
std::vector<std::pair<std::string, Tensor>> read_tree_regressor(const Node& n, int64_t features);
std::vector<std::pair<std::string, Tensor>> read_tree_classifier(const Node& n, int64_t features);
void write_tree_regressor(Node& n, const std::vector<Tensor>& values);
void write_tree_classifier(Node& n, const std::vector<Tensor>& values);
// The node with the leaves as its second input. Which leaf a row reaches is found by the ensemble
// itself, with the numbers of the leaves as their values; what stands there is looked up.
std::vector<ValueId> tree_regressor_form(GradBuilder& b);
std::vector<ValueId> tree_classifier_form(GradBuilder& b);

}  // namespace onnxtrain::ops
