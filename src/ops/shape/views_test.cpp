// Values and gradients of Reshape, Flatten, Squeeze, Unsqueeze, Identity, Shape and Size.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(Views, Values) {
  Tensor x = random_tensor({2, 3, 4});
  OpCase("Reshape", 14)
      .input(x)
      .constant(Tensor::vector<int64_t>({0, -1}))
      .expect(x.reshaped({2, 12}));
  OpCase("Reshape", 14).input(x).input(Tensor::vector<int64_t>({4, -1})).expect(x.reshaped({4, 6}));
  OpCase("Flatten", 13).attr("axis", int64_t(2)).input(x).expect(x.reshaped({6, 4}));
  OpCase("Shape", 15).input(x).expect(Tensor::vector<int64_t>({2, 3, 4}));
  OpCase("Reshape", 14).input(x).constant(Tensor::vector<int64_t>({4, 6})).check_grad();
  OpCase("Unsqueeze", 13).input(x).constant(Tensor::vector<int64_t>({0, -1})).check_grad();
}

TEST(Views, SqueezeIdentityAndSize) {
  Tensor x = random_tensor({2, 1, 3});
  OpCase("Squeeze", 13).input(x).constant(ints({1})).expect(x.reshaped({2, 3}));
  OpCase("Squeeze", 13).input(x).expect(x.reshaped({2, 3}));
  OpCase("Squeeze", 13).input(x).constant(ints({-2})).check_grad({0});
  OpCase("Unsqueeze", 13).input(x).constant(ints({0})).expect(x.reshaped({1, 2, 1, 3}));
  OpCase("Identity", 19).input(x).expect(x);
  OpCase("Identity", 19).input(x).check_grad();
  OpCase("Size", 19).input(x).expect(Tensor::scalar<int64_t>(6));
  OpCase("Flatten", 13).input(x).check_grad();
  OpCase("Shape", 15).attr("start", int64_t(1)).attr("end", int64_t(-1)).input(x).expect(ints({1}));
}

}  // namespace onnxtrain::testing
