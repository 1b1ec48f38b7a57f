// Functions over float arrays, out[i] = f(x[i]), x may be out. An element gives the same bits
// wherever it stands. Errors are at most about 2 units in the last place (tanh, sigmoid, pow up to
// 4) over the whole range; infinities, NaN and denormals as in the C library. Kernels that compute
// on vectors use the functions of vmath-inl.hpp themselves.
#pragma once
#include <cstdint>

namespace onnxtrain::simd {

void vexp(const float* x, float* out, int64_t n);
void vtanh(const float* x, float* out, int64_t n);
void vsigmoid(const float* x, float* out, int64_t n);
// One exponent for all: 2, 3, 0.5, -0.5, -1, 1 and 0 without logarithms.
void vpow(const float* x, float y, float* out, int64_t n);

}  // namespace onnxtrain::simd
