// Identity nodes: text in, text out.
#include <gtest/gtest.h>

#include "tests/support/text_case.hpp"

namespace onnxtrain::testing {

TEST(Identity, ReadersReadTheSource) {
  EXPECT_EQ(after_pass(pass_identity, R"(
    g (float[2] x) => (float[2] y) {
      a = Identity(x)
      b = Identity(a)
      c = Neg(b)
      y = Add(c, a)
    })"),
            "a = Identity(x)\nb = Identity(x)\nc = Neg(x)\ny = Add(c, x)\n");
}

TEST(Identity, AnOutputKeepsItsNode) {
  EXPECT_EQ(after_pass(pass_identity, R"(
    g (float[2] x) => (float[2] y, float[2] z) {
      a = Identity(x)
      y = Identity(a)
      z = Neg(y)
    })"),
            "a = Identity(x)\ny = Identity(x)\nz = Neg(x)\n");
}

TEST(Identity, NothingToDoChangesNothing) {
  const char* only_output =
      "g (float[2] x) => (float[2] y, float[2] z) { y = Identity(x) z = Neg(y) }";
  EXPECT_EQ(after_pass(pass_identity, only_output), "y = Identity(x)\nz = Neg(y)\n");
  EXPECT_EQ(after_pass(pass_identity, "g (float[2] x) => (float[2] y) { y = Neg(x) }"),
            "y = Neg(x)\n");
}

TEST(Identity, CapturesOfBodiesFollow) {
  Graph g = text_graph(R"(
    g (float[2] x, bool c) => (float[2] z) {
      a = Identity(x)
      z = If (c) <then_branch = t () => (float[2] p) { p = Neg(a) },
                  else_branch = e () => (float[2] q) { q = Exp(a) }>
    })");
  pass_identity(g, PassContext{{}, all_ops()});
  for (const char* branch : {"then_branch", "else_branch"})
    for (const Graph::Capture& c : g.nodes.back().graph(branch)->captures)
      EXPECT_EQ(g.value_name(c.outer), "x") << branch;
}

}  // namespace onnxtrain::testing
