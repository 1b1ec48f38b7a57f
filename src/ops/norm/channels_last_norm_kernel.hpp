// Kernels of batch normalisation on channels-last float tensors, shared by BatchNormalization and
// its fused form.
#pragma once
#include "kernels/norm/channels_last_norm.hpp"
#include "op/channels_last.hpp"
#include "op/op.hpp"

namespace onnxtrain::ops {

// A tensor [N,D...,C] as a matrix.
simd::NormShape norm_shape(const Shape& s);
// "" for a channels-last node of floats; also for [N,C], where both orders are the same.
std::string channel_norm_refuses(const Prepare& p, int x);

struct ChannelNorm {
  simd::NormShape shape;
  float epsilon = 1e-5f, momentum = 0.9f;
  bool train = false;
  simd::NormActivation act;
  bool saves_inverse = false;  // output 4 is 1/sqrt(var + epsilon), otherwise var
};
// (x, scale, bias, mean, var, residual?) -> y, running mean, running var, saved mean, output 4
Kernel channel_norm_kernel(Prepare& p, const ChannelNorm& n);

// Gradients of dy through act and the normalisation; operands by number, -1 where there is none.
// Statistics come from the inputs mean and inverse, from mean and var, or from x itself.
struct ChannelNormGrad : ChannelNorm {
  int bias = -1, mean = -1, inverse = -1, var = -1, y = -1;
  int dz = -1, dmean = -1, dvar = -1;  // outputs: dy after act; of the given statistics
};
// (dy, x, scale, ...) -> dx, dscale, dbias, ...; `train`: the statistics depend on x
Kernel channel_norm_grad_kernel(Prepare& p, const ChannelNormGrad& n);

}  // namespace onnxtrain::ops
