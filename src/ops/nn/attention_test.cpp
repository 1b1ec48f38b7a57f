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

namespace {

// q and y rows first, k and v heads first; two query heads share one of k and v
OpCase fused(int64_t heads = 4) {
  const int64_t batch = 2, kv = 2, rows = 3, keys = 5, width = 2, values = 3;
  OpCase c("FusedAttention", 1, std::string(kOwnDomain));
  return c.attr("dims", Ints{batch, heads, kv, rows, keys, width, values})
      .attr("q_strides", Ints{rows * heads * width, width, heads * width})
      .attr("k_strides", Ints{kv * keys * width, keys * width, width})
      .attr("v_strides", Ints{kv * keys * values, keys * values, values})
      .attr("y_strides", Ints{rows * heads * values, values, heads * values})
      .attr("y_shape", Ints{batch, rows, heads * values})
      .attr("scale", 0.8f)
      .input(random_tensor({batch, rows, heads * width}))
      .input(random_tensor({batch, kv, keys, width}, -1, 1, 2))
      .input(random_tensor({batch, kv, keys, values}, -1, 1, 3));
}
}  // namespace

TEST(FusedAttention, Gradients) {
  fused().check_grad();
  fused().attr("ratio", 0.3f).check_grad();
  fused().attr("ratio", 0.3f).input(random_tensor({4, 1, 5}, -1, 1, 4)).check_grad();
  Tensor open(DType::kBool, {2, 1, 3, 5});
  for (int i = 0; i < 30; ++i) open.as<bool>()[i] = i % 3 != 0 && i / 5 != 4;
  fused().attr("fill", -1.5f).input(open).check_grad();
  fused().attr("fill", -1e30f).attr("open_is", int64_t(0)).input(open).check_grad();
  fused().attr("empty", int64_t(1)).attr("ratio", 0.3f).input(open).check_grad();
}

TEST(FusedAttention, WhatDoesNotFitIsAnError) {
  EXPECT_NO_THROW(fused().run());
  EXPECT_THROW(fused().attr("q_strides", Ints{24, 2, 9}).run(), Error);   // beyond the tensor
  EXPECT_THROW(fused().attr("k_strides", Ints{20, 10, 1}).run(), Error);  // elements twice
  EXPECT_THROW(fused().attr("v_strides", Ints{-30, 15, 3}).run(), Error);
  EXPECT_THROW(fused().attr("y_shape", Ints{2, 3, 6}).run(), Error);
  EXPECT_THROW(fused().attr("dims", Ints{2, 3, 2, 3, 5, 2, 3}).run(), Error);  // 3 heads share 2
  EXPECT_THROW(fused().attr("dims", Ints{2, 4, 0, 3, 5, 2, 3}).run(), Error);
  EXPECT_THROW(fused().attr("is_causal", int64_t(1)).run(), Error);  // 3 queries, 5 keys
  EXPECT_THROW(fused().attr("ratio", 1.0f).run(), Error);
  EXPECT_THROW(fused().input(random_tensor({3, 1})).run(), Error);
  EXPECT_THROW(fused().input(random_tensor({3, 3, 5})).run(), Error);
}

}  // namespace onnxtrain::testing
