// Values and gradients of Where.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(Where, ValuesAndGradient) {
  Tensor c(DType::kBool, {2, 1});
  c.as<bool>()[0] = true;
  c.as<bool>()[1] = false;
  OpCase("Where", 16)
      .input(c)
      .input(Tensor::vector<float>({1, 2}))
      .input(Tensor::scalar<float>(9))
      .expect(Tensor::vector<float>({1, 2, 9, 9}).reshaped({2, 2}));
  OpCase("Where", 9)
      .input(c)
      .input(random_tensor({2, 3}))
      .input(random_tensor({3}, -1, 1, 2))
      .check_grad();
}

}  // namespace onnxtrain::testing
