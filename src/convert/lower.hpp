// Lowered training steps (ruling G15): no Gradient node, explicit backward in standard operators
// and local functions.
#pragma once
#include "convert/prepare.hpp"

namespace onnxtrain {

Model lower(const Model& m, const OpTable& ops);

// ai.onnx.preview.training's optimizers in standard operators; {} for another node.
std::vector<ValueId> lower_optimizer(class GradBuilder& b);

}  // namespace onnxtrain
