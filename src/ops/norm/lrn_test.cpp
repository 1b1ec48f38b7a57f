// Values and gradients of LRN.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(LRN, Gradients) {
  for (int64_t size : {1, 2, 3, 9})
    OpCase("LRN", 13)
        .attr("size", size)
        .attr("alpha", 0.5f)
        .attr("beta", 0.6f)
        .attr("bias", 1.5f)
        .input(random_tensor({2, 5, 2}))
        .check_grad();
}

TEST(LRN, Values) {
  // x / (bias + alpha / size * sum of squares over three channels) ^ beta
  OpCase("LRN", 13)
      .attr("size", int64_t(3))
      .attr("alpha", 3.0f)
      .attr("beta", 1.0f)
      .attr("bias", 1.0f)
      .input(floats({1, 2, 3}, {1, 3, 1}))
      .expect(floats({1 / 6.f, 2 / 15.f, 3 / 14.f}, {1, 3, 1}));
}

}  // namespace onnxtrain::testing
