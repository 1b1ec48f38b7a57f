// Shapes for gradients in standard operators: everything but the batch must be a number.
#pragma once
#include "op/grad_builder.hpp"

namespace onnxtrain::ops {

// From the constant `shape` (or kNone), or from the type of `typed`, which has that shape; the
// batch, dimension 0, is -1 when it is open. OT1206 in words when another size is unknown.
Shape lowering_shape(GradBuilder& b, ValueId shape, ValueId typed, const char* what);
// The same with 1 in place of an open batch, where the batch does not matter.
Shape lowering_shape_of_one(GradBuilder& b, ValueId shape, ValueId typed, const char* what);

}  // namespace onnxtrain::ops
