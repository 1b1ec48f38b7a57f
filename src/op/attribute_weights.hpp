// Weights that stand in attributes: the numbers of a linear model, of a support vector machine, of
// the leaves of trees (ai.onnx.ml). To train them, prepare makes initializers of them and writes
// the node in standard operators; an export writes them back.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "op/grad_builder.hpp"

namespace onnxtrain {

struct AttributeWeights {
  // Names and values in the order of the inputs that they become; none: this node has no form that
  // can be trained. features: columns of the first input, -1 when they are not known.
  std::vector<std::pair<std::string, Tensor>> (*read)(const Node&, int64_t features);
  void (*write)(Node&, const std::vector<Tensor>&);
  // The node in standard operators, with the weights as inputs behind its own.
  std::vector<ValueId> (*form)(GradBuilder&);
};

// Of this operator; null: it has none. Defined by ops/.
const AttributeWeights* attribute_weights_of(const Node& n);

}  // namespace onnxtrain
