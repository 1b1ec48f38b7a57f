// The vector parts of channels_last_norm.cpp, one table per instruction set; pointers are at the
// chunk.
#pragma once
#include "kernels/norm/channels_last_norm.hpp"

namespace onnxtrain::simd {

struct ChannelNormKernels {
  // mean and sum of squared distances from it, of every channel over the rows
  void (*statistics)(int64_t rows, int64_t channels, const float* x, float* mean, float* squares);
  void (*apply)(int64_t rows, int64_t channels, const float* x, const float* a, const float* b,
                const float* residual, NormActivation act, float* y);
  void (*grad_sums)(int64_t rows, int64_t channels, const NormGrad& n, float* g, float* sum,
                    float* dot);
  void (*grad_apply)(int64_t rows, int64_t channels, const NormGrad& n, const float* q,
                     const float* shift, float* dx);
};

const ChannelNormKernels& channel_norm_kernels();

}  // namespace onnxtrain::simd
