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

#undef OT_ARRAY_FUNCTIONS
#define OT_ARRAY_FUNCTIONS(F) F(exp) F(tanh) F(sigmoid)
#define OT_DEFINE(f)                                                       \
  void v##f##_impl(const float* x, float* out, int64_t n) {                \
    map_packs(x, out, n, [](const auto& v) HWY_ATTR { return vm::f(v); }); \
  }
OT_ARRAY_FUNCTIONS(OT_DEFINE)
#undef OT_DEFINE

void vpow_impl(const float* x, float y, float* out, int64_t n) {
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
OT_ARRAY_FUNCTIONS(OT_EXPORT)
#undef OT_EXPORT
HWY_EXPORT(vpow_impl);
void vpow(const float* x, float y, float* out, int64_t n) {
  HWY_DYNAMIC_DISPATCH(vpow_impl)(x, y, out, n);
}
}  // namespace onnxtrain::simd
#endif
