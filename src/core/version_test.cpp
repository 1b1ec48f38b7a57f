// The version has three numbers.
#include "core/version.hpp"

#include <gtest/gtest.h>

#include <cstdio>

namespace onnxtrain {
namespace {

TEST(Version, HasThreeNumbers) {
  int major = -1, minor = -1, patch = -1;
  EXPECT_EQ(std::sscanf(version(), "%d.%d.%d", &major, &minor, &patch), 3);
}

}  // namespace
}  // namespace onnxtrain
