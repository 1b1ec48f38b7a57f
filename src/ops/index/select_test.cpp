// Values and gradients of NonZero and Compress.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(Select, Values) {
  OpCase("NonZero", 13)
      .input(floats({1, 0, 2, 3}, {2, 2}))
      .expect(ints({0, 1, 1, 0, 0, 1}, {2, 3}));
  OpCase("Compress", 11)
      .attr("axis", int64_t(1))
      .input(floats({1, 2, 3, 4}, {2, 2}))
      .input(bools({0, 1}))
      .expect(floats({2, 4}, {2, 1}));
  OpCase("Compress", 11)
      .input(floats({1, 2, 3, 4}, {2, 2}))
      .input(bools({0, 1, 1}))
      .expect(floats({2, 3}));
  OpCase("Compress", 11)
      .attr("axis", int64_t(0))
      .input(random_tensor({3, 2}))
      .constant(bools({1, 0, 1}))
      .check_grad({0});
}

}  // namespace onnxtrain::testing
