// For gradient rules: an optional output that the backward pass wants from the forward node.
#pragma once
#include "op/grad_builder.hpp"

namespace onnxtrain::ops {

// Output k of the node whose rule is running; the node gets it, with this type, if it has none.
ValueId ensure_output(GradBuilder& b, int k, const TypeInfo& type, std::string_view hint);

}  // namespace onnxtrain::ops
