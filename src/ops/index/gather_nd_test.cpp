// Values and gradients of GatherElements and GatherND.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(GatherElements, ValuesAndGradient) {
  OpCase("GatherElements", 13)
      .attr("axis", int64_t(1))
      .input(floats({1, 2, 3, 4}, {2, 2}))
      .input(ints({0, 0, -1, 0}, {2, 2}))
      .expect(floats({1, 1, 4, 3}, {2, 2}));
  OpCase("GatherElements", 11)
      .attr("axis", int64_t(0))
      .input(random_tensor({3, 4}))
      .input(ints({0, 2, 2, 1, 1, 0}, {2, 3}))
      .check_grad();
  OpCase("GatherElements", 13)
      .attr("axis", int64_t(-1))
      .input(random_tensor({2, 3, 4}))
      .input(random_ints({2, 3, 5}, 0, 4))
      .check_grad();
  EXPECT_THROW(OpCase("GatherElements", 13).input(floats({1, 2})).input(ints({2})).run(), Error);
}

TEST(GatherND, ValuesAndGradient) {
  OpCase("GatherND", 13)
      .input(floats({0, 1, 2, 3}, {2, 2}))
      .input(ints({0, 0, 1, -1}, {2, 2}))
      .expect(floats({0, 3}));
  OpCase("GatherND", 12)
      .attr("batch_dims", int64_t(1))
      .input(floats({0, 1, 2, 3, 4, 5, 6, 7}, {2, 2, 2}))
      .input(ints({1, 0}, {2, 1}))
      .expect(floats({2, 3, 4, 5}, {2, 2}));
  OpCase("GatherND", 13)
      .input(random_tensor({3, 4, 2}))
      .input(ints({0, 1, 2, 3, 0, 1}, {3, 2}))
      .check_grad();
  OpCase("GatherND", 13)
      .attr("batch_dims", int64_t(1))
      .input(random_tensor({2, 3, 4}))
      .input(ints({2, 2, 0, 1}, {2, 2, 1}))
      .check_grad();
  EXPECT_THROW(OpCase("GatherND", 13).input(floats({1, 2})).input(ints({5}, {1, 1})).run(), Error);
}

}  // namespace onnxtrain::testing
