// Lowered training steps (ruling G15): no Gradient node, explicit backward in standard operators
// and local functions.
#pragma once
#include "convert/prepare.hpp"

namespace onnxtrain {

Model lower(const Model& m, const OpTable& ops);

// Types with as many numbers as the inputs allow, and values that shapes are computed from. Nodes
// stay; the values that became constants are returned, to be undone. `data`: inputs of the
// algorithm, whose nodes begin at `main_nodes`.
std::vector<ValueId> settle_types(Graph& g, size_t main_nodes, const std::vector<ValueId>& data,
                                  const OpTable& ops);

// BatchNormalization that computes the statistics of its batch; its results in standard operators.
bool is_training_norm(const Node& n);
std::vector<ValueId> lower_training_norm(class GradBuilder& b);

}  // namespace onnxtrain
