// The processor-specific pieces of the reductions.
#pragma once
#include "kernels/reduce/reduce.hpp"

namespace onnxtrain::simd {

struct ReduceKernels {
  float (*contiguous[6])(const float* x, int64_t n);
  void (*rows[6])(const float* x, int64_t k, int64_t n, int64_t ld, float* out);
  float (*dot)(const float* x, const float* y, int64_t n);
};
const ReduceKernels& reduce_kernels();

}  // namespace onnxtrain::simd
