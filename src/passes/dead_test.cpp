// Dead nodes: text in, text out.
#include <gtest/gtest.h>

#include "tests/support/text_case.hpp"

namespace onnxtrain::testing {

namespace {
constexpr const char* kWithDeadEnds = R"(
  g (float[2] x) => (float[2] y) {
    a = Exp(x)
    b = Neg(a)
    c = Sin(x)
    d = Cos(c)
    y = Add(a, a)
  })";
}  // namespace

TEST(Dead, WhatNothingNeedsGoes) {
  EXPECT_EQ(after_pass(pass_dead, kWithDeadEnds), "a = Exp(x)\ny = Add(a, a)\n");
}

TEST(Dead, UpdatesAndWhatTheyReadStay) {
  EXPECT_EQ(after_pass(pass_dead, kWithDeadEnds, {"d"}),
            "a = Exp(x)\nc = Sin(x)\nd = Cos(c)\ny = Add(a, a)\n");
}

TEST(Dead, WhatABodyCapturesStays) {
  EXPECT_EQ(after_pass(pass_dead, R"(
    g (float[2] x, bool c) => (float[2] y) {
      a = Exp(x)
      b = Sin(x)
      y = If (c) <then_branch = t () => (float[2] p) { p = Neg(a) },
                  else_branch = e () => (float[2] q) { q = Neg(x) }>
    })"),
            "a = Exp(x)\ny = If<else_branch=graph, then_branch=graph>(c)\n"
            "e () => (q) {\nq = Neg(x)\n}\nt () => (p) {\np = Neg(a)\n}\n");
}

TEST(Dead, ANodeWithOneWantedOutputStays) {
  EXPECT_EQ(after_pass(pass_dead, R"(
    g (float[4] x) => (float[2] b) { a, b = Split<axis = 0, num_outputs = 2>(x) })"),
            "a, b = Split<axis=0, num_outputs=2>(x)\n");
}

}  // namespace onnxtrain::testing
