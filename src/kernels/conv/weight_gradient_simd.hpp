// The processor-specific pieces of weight_gradient.cpp, one table per instruction set.
#pragma once
#include "kernels/conv/weight_gradient.hpp"

namespace onnxtrain::simd {

struct GradWKernels {
  int mr, nr;  // output and input channels of a tile
  // c[rows of the tile][nr] (+)= sum over rows and count of a * b; a steps by `as`, b by `bs`.
  void (*tile[14])(const GradWRow* rows, int64_t row_count, int64_t count, const float* a,
                   int64_t as, const float* b, int64_t bs, float* c, int64_t ldc, bool first);
  // Copies `width` channels of `pixels` pixels, `ld` apart, to [pixels][height], zero filled.
  // `after`: channels that may be read behind those of every pixel.
  void (*pack)(const float* from, int64_t ld, int64_t pixels, int64_t width, int64_t height,
               int64_t after, float* to);
};

const GradWKernels& grad_w_kernels();

}  // namespace onnxtrain::simd
