// Values and gradients of Gather.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(Gather, ValuesAndGradient) {
  Tensor x = Tensor::vector<float>({1, 2, 3, 4, 5, 6}).reshaped({3, 2});
  OpCase("Gather", 13)
      .input(x)
      .input(ints({2, -3}))
      .expect(Tensor::vector<float>({5, 6, 1, 2}).reshaped({2, 2}));
  OpCase("Gather", 13)
      .attr("axis", int64_t(1))
      .input(x)
      .input(Tensor::scalar<int64_t>(1))
      .expect(Tensor::vector<float>({2, 4, 6}));
  OpCase("Gather", 1)
      .input(random_tensor({5, 3}))
      .input(ints({1, 4, 1, 0, -1}).reshaped({5}))
      .check_grad();
  OpCase("Gather", 13)
      .attr("axis", int64_t(-1))
      .input(random_tensor({2, 5}))
      .input(ints({1, 1, -5, 2}).reshaped({2, 2}))
      .check_grad();
  OpCase("Gather", 13)
      .attr("axis", int64_t(1))
      .input(random_tensor({2, 3, 70}))
      .input(ints({0, 0, 2}))
      .check_grad();
  OpCase("Gather", 13).input(random_tensor({5, 3})).input(ints({})).check_grad();
  EXPECT_THROW(OpCase("Gather", 13).input(x).input(ints({3})).run(), Error);
  EXPECT_THROW(OpCase("Gather", 13).input(x).input(ints({-4})).run(), Error);
}

}  // namespace onnxtrain::testing
