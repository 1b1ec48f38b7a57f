// Shared by the pools: their windows and attributes.
#pragma once
#include "kernels/pool/channels_last_pool.hpp"
#include "kernels/pool/pool_ref.hpp"
#include "op/channels_last.hpp"
#include "op/grad_builder.hpp"
#include "ops/common/widened_kernel.hpp"
#include "ops/nn/window_shape.hpp"

namespace onnxtrain::ops {

// The window of a pool over x; a Global* pool, or a gradient node with attribute global, covers
// all.
kernels::Window pool_window(const Node& n, const Shape& x);
// Shape function of a pool with one output of the input's type.
void pool_shape(ShapeCtx& c);
// Shape function of NAMEGrad(dy, x, ...): the type of x.
// Output 0 is the gradient of a pool's input x when input 0 is that of its output.
void set_pool_gradient(ShapeCtx& c, DType dtype, const Shape& x);
void pool_grad_shape(ShapeCtx& c);
// Window attributes for a gradient node.
GradBuilder::Attrs pool_attrs(const Node& n);
// Whether a pool node can be turned to channels last: float32, one output, lists of taps that stay
// small.
bool pool_channels_last(const Graph& g, const Node& n);
inline std::string pool_refuses_last(const Prepare& p) {
  return is_channels_last(p.node()) ? "" : "channels are not last";
}
// The channels-last pool over a tensor of this (channels-last) shape.
std::shared_ptr<simd::ChannelPool> channel_pool(const Node& n, const Shape& x);
inline bool is_global(const Node& n) { return n.op.starts_with("Global") || n.i("global", 0) != 0; }

}  // namespace onnxtrain::ops
