// Values and gradients of Det.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(Det, ValuesAndGradients) {
  OpCase("Det", 22)
      .input(Tensor::vector<float>({1, 2, 3, 4}).reshaped({2, 2}))
      .expect(Tensor::scalar<float>(-2));
  OpCase("Det", 22).input(random_tensor({2, 3, 3})).check_grad();
  OpCase("Det", 22).input(random_tensor({1, 1})).check_grad();
  OpCase("Det", 22)
      .input(Tensor::vector<float>({1, 2, 3, 2, 4, 6, 1, 0, 1}).reshaped({3, 3}))
      .check_grad();
}

}  // namespace onnxtrain::testing
