// Values and gradients of PRelu.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(PRelu, Values) {
  OpCase("PRelu", 16)
      .input(floats({-2, 3, 4, -5}, {2, 2}))
      .input(floats({0.5f, 0.25f}))
      .expect(floats({-1, 3, 4, -1.25f}, {2, 2}));
}

TEST(PRelu, Gradients) {
  Tensor x = Tensor::vector<float>({-2, -1, -0.5f, 0.5f, 1, 2, 3, -3, -4, 4, 0.3f, -0.3f})
                 .reshaped({2, 3, 2});
  for (const Shape& s : {Shape{}, Shape{1}, Shape{2}, Shape{3, 1}, Shape{2, 3, 2}, Shape{1, 3, 1}})
    OpCase("PRelu", 16).input(x).input(random_tensor(s, 0.1, 1)).check_grad();
  OpCase("PRelu", 6).input(x).input(random_tensor({3}, 0.1, 1)).check_grad();
  OpCase("PRelu", 6).input(x).input(random_tensor({1}, 0.1, 1)).check_grad();
}

}  // namespace onnxtrain::testing
