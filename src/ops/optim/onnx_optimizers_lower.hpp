// Momentum, Adagrad and Adam of ai.onnx.preview.training in standard operators: for lowered files,
// and for gradients through an optimizer's step.
#pragma once
#include "op/grad_builder.hpp"

namespace onnxtrain::ops {

std::vector<ValueId> lower_optimizer(GradBuilder& b);

}  // namespace onnxtrain::ops
