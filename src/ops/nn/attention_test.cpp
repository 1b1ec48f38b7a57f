// Attention: gradients over head layouts, masks, caches, windows and softcap; FusedAttention with
// strides and dropout, and attributes that do not fit.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

namespace {
OpCase four(int64_t heads, int64_t kv, int64_t queries, int64_t keys) {
  OpCase c("Attention", 25);
  return c.input(random_tensor({2, heads, queries, 3}))
      .input(random_tensor({2, kv, keys, 3}, -1, 1, 2))
      .input(random_tensor({2, kv, keys, 2}, -1, 1, 3));
}
}  // namespace

TEST(Attention, Gradients) {
  four(2, 2, 3, 4).check_grad();
  four(4, 2, 3, 4).attr("is_causal", int64_t(1)).check_grad();
  four(2, 1, 3, 5).attr("softcap", 0.7f).attr("scale", 1.3f).check_grad();
  four(2, 2, 4, 4)
      .attr("left_window_size", int64_t(1))
      .attr("right_window_size", int64_t(0))
      .check_grad();
  four(2, 2, 3, 4).input(random_tensor({3, 4}, -1, 1, 5)).check_grad();
  four(2, 2, 3, 4)
      .input(random_tensor({2, 1, 3, 3}, -1, 1, 5))
      .check_grad();  // shorter than the keys
  Tensor allowed(DType::kBool, {3, 4});
  for (int i = 0; i < 12; ++i) allowed.as<bool>()[i] = i % 4 == 0 || (i > 4 && i % 3 != 0);
  for (int j = 0; j < 4; ++j) allowed.as<bool>()[j] = false;  // a row without keys
  four(2, 2, 3, 4).input(allowed).check_grad();
  four(2, 2, 70, 2).check_grad();  // more than one block of queries
}

TEST(Attention, PackedHeadsAndPast) {
  OpCase("Attention", 24)
      .attr("q_num_heads", int64_t(2))
      .attr("kv_num_heads", int64_t(1))
      .input(random_tensor({1, 3, 4}))
      .input(random_tensor({1, 2, 2}, -1, 1, 2))
      .input(random_tensor({1, 2, 3}, -1, 1, 3))
      .check_grad();
  OpCase("Attention", 24)
      .attr("q_num_heads", int64_t(2))
      .attr("kv_num_heads", int64_t(2))
      .attr("is_causal", int64_t(1))
      .input(random_tensor({1, 2, 4}))
      .input(random_tensor({1, 2, 4}, -1, 1, 2))
      .input(random_tensor({1, 2, 4}, -1, 1, 3))
      .skip_input()
      .input(random_tensor({1, 2, 3, 2}, -1, 1, 4))
      .input(random_tensor({1, 2, 3, 2}, -1, 1, 5))
      .outputs(3)
      .check_grad();
  four(2, 2, 2, 4)
      .skip_input()
      .skip_input()
      .skip_input()
      .input(Tensor::vector<int64_t>({3, 2}))
      .attr("is_causal", int64_t(1))
      .check_grad();
}

TEST(Attention, BadShapesAreErrors) {
  EXPECT_THROW(OpCase("Attention", 23)
                   .input(random_tensor({1, 3, 4}))
                   .input(random_tensor({1, 2, 4}))
                   .input(random_tensor({1, 2, 4}))
                   .run(),
               Error);
  EXPECT_THROW(four(3, 2, 2, 2).run(), Error);
  EXPECT_THROW(four(2, 2, 3, 4).input(random_tensor({3, 5})).run(), Error);
}

}  // namespace onnxtrain::testing
