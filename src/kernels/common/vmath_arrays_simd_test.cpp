// The functions of vmath_arrays_test.hpp, per instruction set.
#include "kernels/common/targets.hpp"
#include "kernels/common/vmath_arrays_test.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/common/vmath_arrays_simd_test.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// after highway.h
#include "kernels/common/loops-inl.hpp"
#include "kernels/common/vmath-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace onnxtrain::simd {
namespace HWY_NAMESPACE {
using V = vm::V;

#undef OT_SINGLE_FUNCTIONS
#define OT_SINGLE_FUNCTIONS(F) F(expm1) F(log) F(log1p) F(softplus) F(rsqrt) F(sin) F(cos)
#undef OT_PACK_FUNCTIONS
#define OT_PACK_FUNCTIONS(F) \
  F(erf) F(gelu) F(gelu_grad) F(gelu_tanh) F(gelu_tanh_grad) F(silu) F(silu_grad)

#define OT_DEFINE(f)                                        \
  void f##_array(const float* x, float* out, int64_t n) {   \
    map1(x, out, n, [](V v) HWY_ATTR { return vm::f(v); }); \
  }
OT_SINGLE_FUNCTIONS(OT_DEFINE)
#undef OT_DEFINE
#define OT_DEFINE(f)                                                       \
  void f##_array(const float* x, float* out, int64_t n) {                  \
    map_packs(x, out, n, [](const auto& v) HWY_ATTR { return vm::f(v); }); \
  }
OT_PACK_FUNCTIONS(OT_DEFINE)
#undef OT_DEFINE

void pow_array(const float* x, const float* y, float* out, int64_t n) {
  map2(x, y, out, n, [](V a, V b) HWY_ATTR { return vm::pow(a, b); });
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxtrain::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxtrain::simd {
#define OT_EXPORT(f)     \
  HWY_EXPORT(f##_array); \
  void v##f(const float* x, float* out, int64_t n) { HWY_DYNAMIC_DISPATCH(f##_array)(x, out, n); }
OT_SINGLE_FUNCTIONS(OT_EXPORT)
OT_PACK_FUNCTIONS(OT_EXPORT)
#undef OT_EXPORT
HWY_EXPORT(pow_array);
void vpow(const float* x, const float* y, float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(pow_array)(x, y, out, n);
}
}  // namespace onnxtrain::simd
#endif
