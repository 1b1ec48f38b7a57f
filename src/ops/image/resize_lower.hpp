// Resize and its gradient in standard operators.
#pragma once
#include "op/grad_builder.hpp"

namespace onnxtrain::ops {

// Nothing when a size along a resized axis is open.
std::vector<ValueId> resize_lower(GradBuilder& b);
std::vector<ValueId> resize_grad_lower(GradBuilder& b);

}  // namespace onnxtrain::ops
