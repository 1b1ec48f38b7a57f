// Functions over float arrays, out[i] = f(x[i]), x may be out. An element gives the same bits
// wherever it stands. Errors are at most about 2 units in the last place (tanh, sigmoid, pow and
// the gradients up to 4) over the whole range; infinities, NaN and denormals as in the C library.
// gelu and its gradient: that bound relative to |x| and to 1 where 1 + erf cancels.
#pragma once
#include <cstdint>

namespace onnxtrain::simd {

void vexp(const float* x, float* out, int64_t n);
void vexpm1(const float* x, float* out, int64_t n);
void vlog(const float* x, float* out, int64_t n);
void vlog1p(const float* x, float* out, int64_t n);
void vtanh(const float* x, float* out, int64_t n);
void vsigmoid(const float* x, float* out, int64_t n);
void vsoftplus(const float* x, float* out, int64_t n);  // log(1 + e^x)
void verf(const float* x, float* out, int64_t n);
void vgelu(const float* x, float* out, int64_t n);       // x/2 (1 + erf(x/sqrt 2))
void vgelu_grad(const float* x, float* out, int64_t n);  // its derivative at x
void vgelu_tanh(const float* x, float* out, int64_t n);  // the tanh approximation
void vgelu_tanh_grad(const float* x, float* out, int64_t n);
void vsilu(const float* x, float* out, int64_t n);
void vsilu_grad(const float* x, float* out, int64_t n);
void vsqrt(const float* x, float* out, int64_t n);
void vrsqrt(const float* x, float* out, int64_t n);  // 1/sqrt(x)
void vsin(const float* x, float* out, int64_t n);
void vcos(const float* x, float* out, int64_t n);
void vpow(const float* x, const float* y, float* out, int64_t n);
// One exponent for all: 2, 3, 0.5, -0.5, -1, 1 and 0 without logarithms.
void vpow(const float* x, float y, float* out, int64_t n);

}  // namespace onnxtrain::simd
