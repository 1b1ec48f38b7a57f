// Weights that stand in attributes of operators (ai.onnx.ml: linear models, support vector
// machines, leaves of trees) become initializers, so that they can be trained, and attributes
// again.
#pragma once
#include "model/model.hpp"
#include "op/op.hpp"

namespace onnxtrain {

// Operators of the main graph that have such weights are written in standard operators. What they
// were is kept in the metadata. True if something changed.
bool adopt_attribute_weights(Model& m, const OpTable& ops);

// Names of the initializers that were made so.
std::vector<std::string> adopted_weights(const Model& m);

// The model as it is exported: those operators as they were, with the trained numbers.
Model with_attribute_weights(const Model& m, const OpTable& ops);

}  // namespace onnxtrain
