// FusedAttention against the chain it stands for, and its gradient by differences.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

namespace {

// [batch, heads, rows, width] as it lies in memory.
OpCase fused_attention(const Tensor& q, const Tensor& k, const Tensor& v) {
  const Shape &s = q.shape(), &t = k.shape();
  auto strides = [](const Shape& d) { return Ints{d[1] * d[2] * d[3], d[2] * d[3], d[3]}; };
  return OpCase("FusedAttention", 1, std::string(kOwnDomain))
      .attr("dims", Ints{s[0], s[1], t[1], s[2], t[2], s[3], v.shape()[3]})
      .attr("q_strides", strides(s))
      .attr("k_strides", strides(t))
      .attr("v_strides", strides(v.shape()))
      .attr("y_strides", strides({s[0], s[1], s[2], v.shape()[3]}))
      .attr("y_shape", Ints{s[0], s[1], s[2], v.shape()[3]})
      .attr("scale", 0.5f)
      .input(q)
      .input(k)
      .input(v);
}

}  // namespace

TEST(FusedAttention, IsTheChain) {
  Tensor q = random_tensor({2, 3, 4, 5}), k = random_tensor({2, 3, 6, 5}, -1, 1, 2),
         v = random_tensor({2, 3, 6, 7}, -1, 1, 3);
  Tensor turned = OpCase("Transpose", 13).attr("perm", Ints{0, 1, 3, 2}).input(k).run()[0];
  Tensor scores = OpCase("MatMul", 13).input(q).input(turned).run()[0];
  scores = OpCase("Mul", 14).input(scores).input(Tensor::scalar<float>(0.5f)).run()[0];
  Tensor weights = OpCase("Softmax", 13).input(scores).run()[0];
  fused_attention(q, k, v).expect(OpCase("MatMul", 13).input(weights).input(v).run()[0], 0, 1e-4,
                                  1e-5);
}

namespace {

// q and y rows first, k and v heads first; two query heads share one of k and v
OpCase grouped_heads(int64_t heads = 4) {
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
  grouped_heads().check_grad();
  grouped_heads().attr("ratio", 0.3f).check_grad();
  grouped_heads().attr("ratio", 0.3f).input(random_tensor({4, 1, 5}, -1, 1, 4)).check_grad();
  Tensor open(DType::kBool, {2, 1, 3, 5});
  for (int i = 0; i < 30; ++i) open.as<bool>()[i] = i % 3 != 0 && i / 5 != 4;
  grouped_heads().attr("fill", -1.5f).input(open).check_grad();
  grouped_heads().attr("fill", -1e30f).attr("open_is", int64_t(0)).input(open).check_grad();
  grouped_heads().attr("empty", int64_t(1)).attr("ratio", 0.3f).input(open).check_grad();
}

TEST(FusedAttention, WhatDoesNotFitIsAnError) {
  EXPECT_NO_THROW(grouped_heads().run());
  EXPECT_THROW(grouped_heads().attr("q_strides", Ints{24, 2, 9}).run(),
               Error);  // beyond the tensor
  EXPECT_THROW(grouped_heads().attr("k_strides", Ints{20, 10, 1}).run(), Error);  // elements twice
  EXPECT_THROW(grouped_heads().attr("v_strides", Ints{-30, 15, 3}).run(), Error);
  EXPECT_THROW(grouped_heads().attr("y_shape", Ints{2, 3, 6}).run(), Error);
  EXPECT_THROW(grouped_heads().attr("dims", Ints{2, 3, 2, 3, 5, 2, 3}).run(),
               Error);  // 3 heads share 2
  EXPECT_THROW(grouped_heads().attr("dims", Ints{2, 4, 0, 3, 5, 2, 3}).run(), Error);
  EXPECT_THROW(grouped_heads().attr("is_causal", int64_t(1)).run(), Error);  // 3 queries, 5 keys
  EXPECT_THROW(grouped_heads().attr("ratio", 1.0f).run(), Error);
  EXPECT_THROW(grouped_heads().input(random_tensor({3, 1})).run(), Error);
  EXPECT_THROW(grouped_heads().input(random_tensor({3, 3, 5})).run(), Error);
}

}  // namespace onnxtrain::testing
