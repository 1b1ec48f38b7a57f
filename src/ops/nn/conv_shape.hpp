// Shapes, kernels and gradient builders shared by Conv, ConvTranspose and their gradient operators.
#pragma once
#include "kernels/conv/conv_ref.hpp"
#include "op/channels_last.hpp"
#include "op/grad_builder.hpp"
#include "op/op.hpp"

namespace onnxtrain::ops {

// The problem of a convolution from the shapes of its input [N,C,...] and weights [M,C/group,k...].
kernels::ConvShape conv_shape_of(const Node& n, const Shape& x, const Shape& w);
// [N, channels, spatial...]
Shape with_channels(int64_t batch, int64_t channels, const std::vector<int64_t>& spatial);

// A model error when input 2 is there and has not one number for every channel.
void check_conv_bias(const ShapeCtx& c, int64_t channels);

// Whether a convolution node can be turned to channels last: float32, at most three dimensions.
bool conv_channels_last(const Graph& g, const Node& n);

// The multiply-adds of the problem (the same for all three kinds), every operand once.
Cost conv_cost(const Prepare& p, const kernels::ConvShape& s);

// Sum of dy over everything but the channels.
ValueId bias_grad(GradBuilder& b, ValueId dy);

}  // namespace onnxtrain::ops
