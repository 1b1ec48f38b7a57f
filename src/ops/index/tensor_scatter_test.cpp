// Values and gradients of TensorScatter.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(TensorScatter, ValuesAndGradient) {
  OpCase("TensorScatter", 24)
      .attr("axis", int64_t(1))
      .attr("mode", std::string("circular"))
      .input(floats({1, 2, 3, 4, 5, 6}, {2, 3}))
      .input(floats({7, 8, 9, 10}, {2, 2}))
      .input(ints({2, 1}))
      .expect(floats({8, 2, 7, 4, 9, 10}, {2, 3}));
  OpCase("TensorScatter", 24)
      .input(random_tensor({2, 3, 2}))
      .input(random_tensor({2, 1, 2}, -1, 1, 3))
      .input(ints({2, 0}))
      .check_grad();
  EXPECT_THROW(OpCase("TensorScatter", 24)
                   .input(random_tensor({2, 3, 2}))
                   .input(random_tensor({2, 2, 2}))
                   .input(ints({2, 0}))
                   .run(),
               Error);
}

}  // namespace onnxtrain::testing
