// For tests: those functions of vmath-inl.hpp over float arrays that vmath.hpp does not have. gelu
// and the gradients: errors relative to |x| and to 1 where 1 + erf cancels.
#pragma once
#include <cstdint>

namespace onnxtrain::simd {

void vexpm1(const float* x, float* out, int64_t n);
void vlog(const float* x, float* out, int64_t n);
void vlog1p(const float* x, float* out, int64_t n);
void vsoftplus(const float* x, float* out, int64_t n);  // log(1 + e^x)
void vrsqrt(const float* x, float* out, int64_t n);     // 1/sqrt(x)
void vsin(const float* x, float* out, int64_t n);
void vcos(const float* x, float* out, int64_t n);
void verf(const float* x, float* out, int64_t n);
void vgelu(const float* x, float* out, int64_t n);       // x/2 (1 + erf(x/sqrt 2))
void vgelu_grad(const float* x, float* out, int64_t n);  // its derivative at x
void vgelu_tanh(const float* x, float* out, int64_t n);  // the tanh approximation
void vgelu_tanh_grad(const float* x, float* out, int64_t n);
void vsilu(const float* x, float* out, int64_t n);
void vsilu_grad(const float* x, float* out, int64_t n);
void vpow(const float* x, const float* y, float* out, int64_t n);

}  // namespace onnxtrain::simd
