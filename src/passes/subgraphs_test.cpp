// Branches of known conditions and constants of bodies: text in, text out.
#include <gtest/gtest.h>

#include "tests/support/text_case.hpp"

namespace onnxtrain::testing {

namespace {

std::string branch_graph(const char* condition) {
  return cat("g (float[2] x", *condition ? "" : ", bool c", ") => (float[2] y)", condition, R"( {
      a = Exp(x)
      y = If (c) <then_branch = t () => (float[2] p) { q = Add(a, x) p = Sin(q) },
                  else_branch = e () => (float[2] r) { r = Neg(a) }>
    })");
}

std::string after_inlining(const std::string& text, bool expected) {
  Graph g = text_graph(text);
  EXPECT_EQ(inline_constant_ifs(g), expected);
  EXPECT_EQ(g.damage(), "");
  return nodes_text(g);
}

}  // namespace

TEST(InlineConstantIfs, TheBranchTakesTheNodesPlace) {
  EXPECT_EQ(after_inlining(branch_graph("<bool c = {1}>"), true),
            "a = Exp(x)\nq_1 = Add(a, x)\np_1 = Sin(q_1)\ny = Identity(p_1)\n");
  EXPECT_EQ(after_inlining(branch_graph("<bool c = {0}>"), true),
            "a = Exp(x)\nr_1 = Neg(a)\ny = Identity(r_1)\n");
}

TEST(InlineConstantIfs, AFedConditionStays) {
  EXPECT_NE(after_inlining(branch_graph(""), false).find("If<"), std::string::npos);
}

TEST(AbsorbConstants, OnlyWhatIsFixedMovesIntoTheBody) {
  Graph g = text_graph(R"(
    g (float[2] x, bool c) => (float[2] y) <float k = {3}> {
      y = If (c) <then_branch = t () => (float[2] p) { p = Mul(x, k) },
                  else_branch = e () => (float[2] q) { q = Neg(x) }>
    })");
  absorb_constants(g);
  EXPECT_EQ(g.damage(), "");
  GraphPtr then_branch = g.nodes[0].graph("then_branch");
  ASSERT_EQ(then_branch->captures.size(), 1u);
  EXPECT_EQ(g.value_name(then_branch->captures[0].outer), "x");
  const ValueDef& k = then_branch->value(then_branch->nodes[0].inputs[1]);
  ASSERT_TRUE(k.is_constant());
  EXPECT_EQ(k.constant.to_doubles(), std::vector<double>{3});
}

}  // namespace onnxtrain::testing
