// Run-time dispatch reaches every instruction set that this CPU has, with the same result.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/common/hwy_runtime_simd_test.cpp"
#include <hwy/foreach_target.h>
// Highway wants its headers in this order.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace onnxtrain::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Doubles n floats and says for which target it was compiled.
HWY_ATTR long long double_all(float* x, size_t n) {
  const hn::CappedTag<float, 4> d;
  for (size_t i = 0; i < n; i += hn::Lanes(d)) {
    hn::StoreU(hn::Add(hn::LoadU(d, x + i), hn::LoadU(d, x + i)), d, x + i);
  }
  return HWY_TARGET;
}

}  // namespace onnxtrain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <gtest/gtest.h>

#include "core/cpu.hpp"

namespace onnxtrain {
namespace {

HWY_EXPORT(double_all);

TEST(HwyRuntime, EveryTargetOfThisCpuRuns) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    EXPECT_EQ(HWY_DYNAMIC_DISPATCH(double_all)(x, 8), target) << hwy::TargetName(target);
    EXPECT_EQ(x[0], 2.0f);
    EXPECT_EQ(x[7], 16.0f);
  }
  hwy::SetSupportedTargetsForTest(0);
}

#if HWY_ARCH_X86
TEST(HwyRuntime, TheMachinesBestIsFound) {
  auto has = [](int64_t target) { return (hwy::SupportedTargets() & target) != 0; };
  EXPECT_EQ(has(HWY_SSE4), instruction_set() >= Isa::kSse4);
  EXPECT_EQ(has(HWY_AVX2), instruction_set() >= Isa::kAvx2);
  EXPECT_EQ(has(HWY_AVX3), instruction_set() >= Isa::kAvx512);
  if (instruction_set_is_limited()) return;
  EXPECT_EQ(has(HWY_AVX2), __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
  EXPECT_EQ(has(HWY_AVX3),
            __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"));
}
#endif

}  // namespace
}  // namespace onnxtrain
#endif
