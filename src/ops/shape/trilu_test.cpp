// Values and gradients of Trilu.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(Trilu, ValuesAndGradient) {
  Tensor x = floats({1, 2, 3, 4}, {2, 2});
  OpCase("Trilu", 14).input(x).expect(floats({1, 2, 0, 4}, {2, 2}));
  OpCase("Trilu", 14)
      .attr("upper", int64_t(0))
      .input(x)
      .input(Tensor::scalar<int64_t>(-1))
      .expect(floats({0, 0, 3, 0}, {2, 2}));
  OpCase("Trilu", 14)
      .input(random_tensor({2, 3, 4}))
      .constant(Tensor::scalar<int64_t>(1))
      .check_grad({0});
}

}  // namespace onnxtrain::testing
