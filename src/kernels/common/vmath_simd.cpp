// The array functions of vmath.hpp: a loop over whole vectors and a masked tail.
#include "kernels/common/targets.hpp"
#include "kernels/common/vmath.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/common/vmath_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// after highway.h
#include "kernels/common/loops-inl.hpp"
#include "kernels/common/vmath-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace onnxtrain::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using V = vm::V;

#undef OT_SINGLE_FUNCTIONS
#define OT_SINGLE_FUNCTIONS(F) F(expm1) F(log) F(log1p) F(softplus) F(rsqrt) F(sin) F(cos)
#undef OT_PACK_FUNCTIONS
#define OT_PACK_FUNCTIONS(F) \
  F(exp)                     \
  F(tanh) F(sigmoid) F(erf) F(gelu) F(gelu_grad) F(gelu_tanh) F(gelu_tanh_grad) F(silu) F(silu_grad)

#define OT_DEFINE(f)                                        \
  void v##f##_impl(const float* x, float* out, int64_t n) { \
    map1(x, out, n, [](V v) HWY_ATTR { return vm::f(v); }); \
  }
OT_SINGLE_FUNCTIONS(OT_DEFINE)
#undef OT_DEFINE
#define OT_DEFINE(f)                                                       \
  void v##f##_impl(const float* x, float* out, int64_t n) {                \
    map_packs(x, out, n, [](const auto& v) HWY_ATTR { return vm::f(v); }); \
  }
OT_PACK_FUNCTIONS(OT_DEFINE)
#undef OT_DEFINE

void vsqrt_impl(const float* x, float* out, int64_t n) {
  map1(x, out, n, [](V v) HWY_ATTR { return hn::Sqrt(v); });
}
void vpow_impl(const float* x, const float* y, float* out, int64_t n) {
  map2(x, y, out, n, [](V a, V b) HWY_ATTR { return vm::pow(a, b); });
}
void vpow_scalar_impl(const float* x, float y, float* out, int64_t n) {
  if (y == 2) return map1(x, out, n, [](V v) HWY_ATTR { return hn::Mul(v, v); });
  if (y == 3) return map1(x, out, n, [](V v) HWY_ATTR { return hn::Mul(hn::Mul(v, v), v); });
  if (y == 1) return map1(x, out, n, [](V v) HWY_ATTR { return v; });
  if (y == 0) return map1(x, out, n, [](V) HWY_ATTR { return vm::set(1.0f); });
  if (y == -1) return map1(x, out, n, [](V v) HWY_ATTR { return hn::Div(vm::set(1.0f), v); });
  if (y == 0.5f || y == -0.5f) {  // pow(-inf) is +inf, pow(-0) is +0: unlike the square root
    return map1(x, out, n, [y](V v) HWY_ATTR {
      const V a = hn::IfThenElse(v == vm::set(-std::numeric_limits<float>::infinity()), hn::Neg(v),
                                 hn::Add(v, vm::set(0.0f)));
      return y > 0 ? hn::Sqrt(a) : vm::rsqrt(a);
    });
  }
  map1(x, out, n, [y](V v) HWY_ATTR { return vm::pow(v, vm::set(y)); });
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxtrain::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxtrain::simd {
#define OT_EXPORT(f)       \
  HWY_EXPORT(v##f##_impl); \
  void v##f(const float* x, float* out, int64_t n) { HWY_DYNAMIC_DISPATCH(v##f##_impl)(x, out, n); }
OT_SINGLE_FUNCTIONS(OT_EXPORT)
OT_PACK_FUNCTIONS(OT_EXPORT)
OT_EXPORT(sqrt)
#undef OT_EXPORT
HWY_EXPORT(vpow_impl);
HWY_EXPORT(vpow_scalar_impl);
void vpow(const float* x, const float* y, float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(vpow_impl)(x, y, out, n);
}
void vpow(const float* x, float y, float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(vpow_scalar_impl)(x, y, out, n);
}
}  // namespace onnxtrain::simd
#endif
