// Gradients of operators that only move elements, in standard operators: the operator itself is run
// on the numbers of the elements, and the gradient is scattered (added) to where they came from.
#pragma once
#include "op/grad_builder.hpp"

namespace onnxtrain::ops {

// [0, 1, ..., n-1] in the shape given by the int64 tensor `shape`.
ValueId element_numbers(GradBuilder& b, ValueId shape);
// Adds dy to zeros of shape `shape` at the element numbers `from` (same shape as dy).
ValueId scatter_add_elements(GradBuilder& b, ValueId dy, ValueId from, ValueId shape);

// An operator NAME that only moves elements, and NAMEGrad of our own domain, which moves them back.
struct MovingOp {
  ShapeFn shape;
  Kernel (*make)(Prepare&);
  GradFn grad;
  ShapeFn back_shape;
  Kernel (*make_back)(Prepare&);
  GradFn back_grad;
  LowerFn back_lower;
  std::vector<int> shape_values = {}, back_shape_values = {};  // Op::shape_values of the two
  int settings_from = -1;                                      // of NAME
};
void add_moving_op(OpTable& t, const std::string& name, const MovingOp& op);

}  // namespace onnxtrain::ops
