// BatchNormalization into the convolution before it: text in, text out, and the same numbers.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"
#include "tests/support/text_case.hpp"

namespace onnxtrain::testing {

namespace {

constexpr const char* kNormBehindConv = R"(
  g (float[1,1,3,3] x) => (float[1,2,2,2] z)
  <float[2,1,2,2] w = {1,2,3,4,5,6,7,8}, float[2] s = {2,3}, float[2] b = {0.5,-1}, float[2] m = {1,2},
   float[2] v = {4,0.25}> {
    y = Conv(x, w)
    z = BatchNormalization(y, s, b, m, v)
  })";

}  // namespace

TEST(FoldNorm, ConstantWeightsTakeItIn) {
  Graph g = text_graph(kNormBehindConv);
  pass_fold_norm(g, PassContext{{}, all_ops()});
  g.renumber();
  EXPECT_EQ(g.damage(), "");
  ASSERT_EQ(g.nodes.size(), 1u);
  const Node& conv = g.nodes[0];
  ASSERT_EQ(conv.inputs.size(), 3u);
  EXPECT_EQ(g.value_name(conv.outputs[0]), "z");
  // scale / sqrt(variance + epsilon): 1 and 6, nearly
  std::vector<double> w = g.value(conv.inputs[1]).constant.to_doubles(),
                      b = g.value(conv.inputs[2]).constant.to_doubles();
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(w[size_t(i)], i + 1, 1e-4);
  for (int i = 4; i < 8; ++i) EXPECT_NEAR(w[size_t(i)], 6 * (i + 1), 2e-2);
  EXPECT_NEAR(b[0], -1 + 0.5, 1e-4);
  EXPECT_NEAR(b[1], -2 * 6 - 1, 1e-3);
}

TEST(FoldNorm, WhatOthersReadOrIsFedStays) {
  EXPECT_EQ(after_pass(pass_fold_norm, kNormBehindConv, {"y"}),
            "y = Conv(x, w)\nz = BatchNormalization(y, s, b, m, v)\n");
  EXPECT_EQ(after_pass(pass_fold_norm, R"(
    g (float[1,1,3,3] x, float[2,1,2,2] w) => (float[1,2,2,2] z)
    <float[2] s = {2,3}, float[2] b = {0.5,-1}, float[2] m = {1,2}, float[2] v = {4,0.25}> {
      y = Conv(x, w)
      z = BatchNormalization(y, s, b, m, v)
    })"),
            "y = Conv(x, w)\nz = BatchNormalization(y, s, b, m, v)\n");
}

TEST(FoldNorm, SameNumbers) {
  Feeds feeds = {{"x", random_tensor({1, 1, 3, 3})}};
  ProgramOptions apart;
  apart.skip_passes = {"fold_norm"};
  auto run = [&](const ProgramOptions& o) {
    return std::get<Tensor>(Session(text_model(kNormBehindConv), o).run(feeds)[0].second)
        .to_doubles();
  };
  std::vector<double> a = run({}), b = run(apart);
  ASSERT_EQ(a.size(), 8u);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-4) << i;
}

}  // namespace onnxtrain::testing
