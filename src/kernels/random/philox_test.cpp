// Vector random numbers are core's, wherever a range begins.
#include "kernels/random/philox.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "core/random.hpp"

namespace onnxtrain::simd {
namespace {

TEST(Philox, SameBitsAsScalar) {
  for (uint64_t first : {uint64_t(0), uint64_t(3), uint64_t(1024), (uint64_t(1) << 34) - 32})
    for (int64_t n : {1, 31, 64, 1000}) {
      std::vector<float> a(static_cast<size_t>(n)), b(a);
      philox_uniform(7, 11, 5, first, n, a.data());
      onnxtrain::philox_uniform(7, 11, 5, first, n, b.data());
      EXPECT_EQ(a, b) << first << " " << n;
    }
}

TEST(Philox, Drop) {
  std::vector<float> u = {0.5f, 0.1f, 0.3f, 0.9f, 0.2f, 0.7f, 0.31f, 0.0f, 0.4f}, x(9, 2.0f), y(9);
  std::vector<uint8_t> keep(9), want = {1, 0, 1, 1, 0, 1, 1, 0, 1};
  drop(x.data(), y.data(), u.data(), keep.data(), 9, 0.3f, 1.5f);
  EXPECT_EQ(keep, want);
  for (size_t i = 0; i < 9; ++i) EXPECT_EQ(y[i], want[i] ? 3.0f : 0.0f);
}

}  // namespace
}  // namespace onnxtrain::simd
