// Values and gradients of DeformConv.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(DeformConv, WithoutOffsetsItIsAConvolution) {
  Tensor x = random_tensor({1, 2, 4, 4}), w = random_tensor({3, 2, 2, 2}, -1, 1, 2);
  Tensor none(DType::kFloat, {1, 8, 3, 3});
  std::fill_n(none.as<float>(), none.size(), 0.0f);
  Tensor want = OpCase("Conv", 11).input(x).input(w).run()[0];
  OpCase("DeformConv", 19).input(x).input(w).input(none).expect(want);
}

TEST(DeformConv, OffsetsMoveTheSamples) {
  // one row down, half a column to the right
  OpCase("DeformConv", 19)
      .input(floats({1, 2, 3, 4}, {1, 1, 2, 2}))
      .input(floats({2}, {1, 1, 1, 1}))
      .input(floats({1, 0, 0, 0, 0.5f, 0, 0, 0}, {1, 2, 2, 2}))
      .expect(floats({7, 4, 6, 8}, {1, 1, 2, 2}));
}

TEST(DeformConv, Gradients) {
  OpCase("DeformConv", 19)
      .attr("pads", Ints{0, 1, 1, 0})
      .input(random_tensor({2, 2, 4, 4}))
      .input(random_tensor({2, 2, 2, 2}, -1, 1, 2))
      .input(random_tensor({2, 8, 4, 4}, -0.4, 0.4, 3))
      .check_grad();
  OpCase("DeformConv", 19)
      .attr("group", int64_t(2))
      .attr("offset_group", int64_t(2))
      .attr("strides", Ints{2, 1})
      .input(random_tensor({1, 4, 4, 3}))
      .input(random_tensor({2, 2, 2, 2}, -1, 1, 2))
      .input(random_tensor({1, 16, 2, 2}, -0.4, 0.4, 3))
      .input(random_tensor({2}, -1, 1, 4))
      .input(random_tensor({1, 8, 2, 2}, 0.1, 1, 5))
      .check_grad();
}

}  // namespace onnxtrain::testing
