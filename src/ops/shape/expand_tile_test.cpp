// Values and gradients of Expand and Tile.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(Expand, ValuesAndGradient) {
  OpCase("Expand", 13)
      .input(Tensor::vector<float>({1, 2}).reshaped({2, 1}))
      .input(ints({3, 1, 2}))
      .expect(Tensor::vector<float>({1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 2, 2}).reshaped({3, 2, 2}));
  OpCase("Expand", 8).input(random_tensor({3, 1})).constant(ints({2, 3, 4})).check_grad();
  OpCase("Expand", 8).input(random_tensor({3, 4})).constant(ints({1})).check_grad();
}

TEST(Tile, ValuesAndGradient) {
  OpCase("Tile", 13)
      .input(Tensor::vector<float>({1, 2, 3, 4}).reshaped({2, 2}))
      .input(ints({1, 2}))
      .expect(Tensor::vector<float>({1, 2, 1, 2, 3, 4, 3, 4}).reshaped({2, 4}));
  OpCase("Tile", 6).input(random_tensor({2, 3})).constant(ints({3, 2})).check_grad();
  OpCase("Tile", 6).input(random_tensor({2, 3})).input(ints({3, 2})).check_grad({0});
  OpCase("Tile", 6).input(random_tensor({2, 3})).constant(ints({0, 2})).check_grad();
}

}  // namespace onnxtrain::testing
