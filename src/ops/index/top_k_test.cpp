// Values and gradients of TopK; ArgMax and ArgMin.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(TopK, ValuesAndGradient) {
  Tensor x = floats({3, 1, 3, 2}, {1, 4});
  OpCase("TopK", 11).input(x).input(ints({2})).outputs(2).expect(ints({0, 2}, {1, 2}), 1);
  OpCase("TopK", 11)
      .attr("largest", int64_t(0))
      .input(x)
      .input(ints({3}))
      .outputs(2)
      .expect(floats({1, 2, 3}, {1, 3}), 0);
  OpCase("TopK", 1)
      .attr("k", int64_t(1))
      .attr("axis", int64_t(0))
      .input(random_tensor({3, 4}))
      .outputs(2)
      .check_grad();
  OpCase("TopK", 11).input(random_tensor({3, 4})).constant(ints({2})).outputs(2).check_grad();
  EXPECT_THROW(OpCase("TopK", 11).input(x).input(ints({5})).outputs(2).run(), Error);
}

TEST(ArgMax, Values) {
  Tensor x = floats({2, 2, 1, 3, 3, 0}, {2, 3});
  OpCase("ArgMax", 13).attr("axis", int64_t(1)).input(x).expect(ints({0, 0}, {2, 1}));
  OpCase("ArgMax", 13)
      .attr("axis", int64_t(1))
      .attr("select_last_index", int64_t(1))
      .attr("keepdims", int64_t(0))
      .input(x)
      .expect(ints({1, 1}));
  OpCase("ArgMin", 1).input(x).expect(ints({0, 0, 1}, {1, 3}));
}

}  // namespace onnxtrain::testing
