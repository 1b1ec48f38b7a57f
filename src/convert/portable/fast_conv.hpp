// Convolutions and their gradients as ONNX Runtime runs them fastest. Its fast kernels want weights
// that are constants of the file; those of a training step are inputs.
#pragma once
#include "convert/portable/rules.hpp"
#include "convert/portable/windows.hpp"

namespace onnxtrain::portable {

// The weight gradient of a convolution, written as a Conv over the transposed batch.
struct WeightGradient {
  Windows w;                          // of the convolution itself
  int64_t groups, channels, kernels;  // channels of x in a group; kernels in all
};

// false: the form for all runtimes is as good. kNone: the node stays as it is.
bool fast_weight_gradient(Site& s, const WeightGradient& p, ValueId& dw);

// Conv or ConvTranspose of every channel with its own kernel, on images of few pixels: a matrix
// multiplication per channel. Empty: it is something else.
std::vector<ValueId> depthwise(Site& s);

}  // namespace onnxtrain::portable
