// Shared by the pools: their windows and attributes.
#pragma once
#include "kernels/ref/pool.hpp"
#include "op/grad_builder.hpp"
#include "ops/in_float_detail.hpp"
#include "ops/window_detail.hpp"

namespace onnxtrain::ops {

// The window of a pool over x; a Global* pool, or a gradient node with attribute global, covers
// all.
kernels::Window pool_window(const Node& n, const Shape& x);
// Shape function of a pool with one output of the input's type.
void pool_shape(ShapeCtx& c);
// Shape function of NAMEGrad(dy, x, ...): the type of x.
void pool_grad_shape(ShapeCtx& c);
// Window attributes for a gradient node.
GradBuilder::Attrs pool_attrs(const Node& n);
inline bool is_global(const Node& n) { return n.op.starts_with("Global") || n.i("global", 0) != 0; }

}  // namespace onnxtrain::ops
