// Values and gradients of Pow.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(Pow, ValuesAndGradient) {
  OpCase("Pow", 15)
      .input(Tensor::vector<int32_t>({2, -3, 5}))
      .input(Tensor::vector<float>({3, 2, 0}))
      .expect(Tensor::vector<int32_t>({8, 9, 1}));
  OpCase("Pow", 15)
      .input(Tensor::vector<float>({2, -3, 4}))
      .input(Tensor::vector<int64_t>({3, 2, -1}))
      .expect(Tensor::vector<float>({8, 9, 0.25}));
  OpCase("Pow", 15)
      .input(Tensor::vector<int64_t>({2, 1, -1}))
      .input(Tensor::vector<int64_t>({-1, -5, -3}))
      .expect(Tensor::vector<int64_t>({0, 1, -1}));
  OpCase("Pow", 15)
      .input(random_tensor({2, 3}, 0.5, 2))
      .input(random_tensor({3}, -2, 2, 2))
      .check_grad();
  for (float k : {0.f, 1.f, 2.f, 3.f, 0.5f, -1.5f})
    OpCase("Pow", 13)
        .input(random_tensor({2, 3}, 0.5, 2))
        .constant(Tensor::scalar<float>(k))
        .check_grad({0});
  OpCase("Pow", 13)
      .input(random_tensor({2, 3}, -2, -0.5))
      .input(Tensor::vector<int64_t>({2, 3, 0}))
      .check_grad({0});
}

}  // namespace onnxtrain::testing
