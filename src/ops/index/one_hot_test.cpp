// Values and gradients of OneHot.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(OneHot, ValuesAndGradient) {
  OpCase("OneHot", 11)
      .input(ints({1, -1, 7}))
      .input(Tensor::scalar<int64_t>(3))
      .input(floats({0, 5}))
      .expect(floats({0, 5, 0, 0, 0, 5, 0, 0, 0}, {3, 3}));
  OpCase("OneHot", 11)
      .attr("axis", int64_t(0))
      .input(ints({1, 0}))
      .constant(Tensor::scalar<int64_t>(2))
      .input(floats({1, 2}))
      .check_grad();
}

}  // namespace onnxtrain::testing
