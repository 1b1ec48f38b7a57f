// What the machine has is what it says, and ONNXTRAIN_ISA only lowers it.
#include "core/cpu.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace onnxtrain {
namespace {

TEST(Cpu, NotAboveTheLimit) {
  const char* text = std::getenv("ONNXTRAIN_ISA");
  const std::string limit = text ? text : "";
  EXPECT_EQ(instruction_set_is_limited(), !limit.empty());
  if (limit == "sse4") {
    EXPECT_LE(instruction_set(), Isa::kSse4);
  }
  if (limit == "avx2") {
    EXPECT_LE(instruction_set(), Isa::kAvx2);
  }
#if defined(__x86_64__)
  if (limit.empty()) {
    EXPECT_EQ(instruction_set() >= Isa::kAvx2,
              __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
  }
#endif
}

TEST(Cpu, Names) {
#if defined(__aarch64__)
  EXPECT_STREQ(name_of(Isa::kBase), "NEON");
#else
  EXPECT_STREQ(name_of(Isa::kBase), "baseline");
#endif
  EXPECT_STREQ(name_of(Isa::kSse4), "SSE4");
  EXPECT_STREQ(name_of(Isa::kAvx2), "AVX2");
  EXPECT_STREQ(name_of(Isa::kAvx512), "AVX-512");
}

}  // namespace
}  // namespace onnxtrain
