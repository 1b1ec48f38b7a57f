// Common subexpressions: text in, text out.
#include <gtest/gtest.h>

#include "tests/support/text_case.hpp"

namespace onnxtrain::testing {

TEST(Cse, ReadersOfTheSecondReadTheFirst) {
  EXPECT_EQ(after_pass(pass_cse, R"(
    g (float[2] x, float[2] y) => (float[2] z) {
      a = Add(x, y)
      b = Add(x, y)
      c = Mul(a, b)
      d = Mul(b, a)
      e = Mul(b, b)
      z = Sum(c, d, e)
    })"),
            "a = Add(x, y)\n"
            "b = Add(x, y)\n"
            "c = Mul(a, a)\n"
            "d = Mul(a, a)\n"
            "e = Mul(a, a)\n"
            "z = Sum(c, c, c)\n");
}

TEST(Cse, EqualSmallConstantsAreTheSame) {
  EXPECT_EQ(after_pass(pass_cse, R"(
    g (float[2] x) => (float[2] z) <float c = {2}, float d = {2}, float e = {3}> {
      a = Mul(x, c)
      b = Mul(x, d)
      f = Mul(x, e)
      z = Sum(a, b, f)
    })"),
            "a = Mul(x, c)\nb = Mul(x, d)\nf = Mul(x, e)\nz = Sum(a, a, f)\n");
}

TEST(Cse, OtherAttributesAndOperandsStay) {
  EXPECT_EQ(after_pass(pass_cse, R"(
    g (float[2] x, float[2] y) => (float[2] z) {
      a = LeakyRelu<alpha = 0.25>(x)
      b = LeakyRelu<alpha = 0.5>(x)
      c = Sub(a, b)
      d = Sub(b, a)
      z = Add(c, d)
    })"),
            "a = LeakyRelu<alpha=0.25>(x)\nb = LeakyRelu<alpha=0.5>(x)\nc = Sub(a, b)\n"
            "d = Sub(b, a)\nz = Add(c, d)\n");
}

TEST(Cse, RandomNumbersAreDrawnTwice) {
  EXPECT_EQ(after_pass(pass_cse, R"(
    g (float[2] x) => (float[2] z) {
      a = RandomUniformLike(x)
      b = RandomUniformLike(x)
      z = Sub(a, b)
    })"),
            "a = RandomUniformLike(x)\nb = RandomUniformLike(x)\nz = Sub(a, b)\n");
}

TEST(Cse, OutputsAndUpdatesKeepTheirValues) {
  const char* g = R"(
    g (float[2] x) => (float[2] a, float[2] b) {
      a = Exp(x)
      b = Exp(x)
      c = Exp(x)
      d = Neg(c)
    })";
  EXPECT_EQ(after_pass(pass_cse, g, {"c"}), "a = Exp(x)\nb = Exp(x)\nc = Exp(x)\nd = Neg(c)\n");
  EXPECT_EQ(after_pass(pass_cse, g, {"d"}), "a = Exp(x)\nb = Exp(x)\nc = Exp(x)\nd = Neg(a)\n");
}

TEST(Cse, CapturesOfBodiesFollow) {
  EXPECT_EQ(after_pass(pass_cse, R"(
    g (float[2] x, bool c) => (float[2] y, float[2] z) {
      a = Exp(x)
      b = Exp(x)
      y = Neg(a)
      z = If (c) <then_branch = t () => (float[2] p) { p = Add(a, b) },
                  else_branch = e () => (float[2] q) { q = Sub(b, a) }>
    })"),
            "a = Exp(x)\nb = Exp(x)\ny = Neg(a)\n"
            "z = If<else_branch=graph, then_branch=graph>(c)\n"
            "e () => (q) {\nq = Sub(b, a)\n}\nt () => (p) {\np = Add(a, b)\n}\n");
  Graph g = text_graph(R"(
    g (float[2] x, bool c) => (float[2] z) {
      a = Exp(x)
      b = Exp(x)
      z = If (c) <then_branch = t () => (float[2] p) { p = Add(a, b) },
                  else_branch = e () => (float[2] q) { q = Neg(b) }>
    })");
  pass_cse(g, PassContext{{}, all_ops()});
  for (const char* branch : {"then_branch", "else_branch"})
    for (const Graph::Capture& c : g.nodes.back().graph(branch)->captures)
      EXPECT_EQ(g.value_name(c.outer), "a") << branch;
}

}  // namespace onnxtrain::testing
