// Loop: values, gradients, conditions, nesting; lists of any values.
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"
#include "tests/support/text_case.hpp"

namespace onnxtrain::testing {

namespace {

const char* kLoop = R"(
  g (int64 n, double[3] x, double[3] w) => (double[3] last, double[K,3] all) {
    last, all = Loop (n, , x) <body = b (int64 i, bool ci, double[3] s) => (bool co, double[3] t, double[3] u) {
      co = Identity(ci)
      p = Mul(s, w)
      t = Sin(p)
      u = Mul(t, s)
    }>
  })";

}  // namespace

TEST(Loop, ValuesAndGradient) {
  Feeds f = {{"n", number(3)}, {"x", vary({3}, 1)}, {"w", vary({3}, 2)}};
  check_text_grad(kLoop, f, {"x", "w"});
  f["n"] = number(0);
  check_text_grad(kLoop, f, {"x", "w"});
  EXPECT_EQ(std::get<Tensor>(Session(text_model(kLoop)).run(f)[1].second).shape(), (Shape{0, 3}));
}

TEST(Loop, ConditionEndsIt) {
  const char* g = R"(
    g (double[2] x) => (double[2] y, double[K,2] all)
    <double limit = {5.0}, bool go = {1}> {
      y, all = Loop (, go, x) <body = b (int64 i, bool ci, double[2] s) => (bool co, double[2] t, double[2] u) {
        t = Mul(s, x)
        u = Identity(s)
        total = ReduceSum<keepdims = 0>(t)
        co = Less(total, limit)
      }>
    })";
  check_text_grad(g, {{"x", doubles({1.3, 1.1})}}, {"x"});
}

TEST(Loop, GrowingStateAndNesting) {
  const char* g = R"(
    g (int64 n, double[L] x, double[1] w) => (double[M] y) {
      y = Loop (n, , x) <body = b (int64 i, bool ci, double[P] s) => (bool co, double[Q] t) {
        co = Identity(ci)
        one = Constant<value_int = 1>()
        first = Less(i, one)
        v = If (first) <then_branch = tt () => (double[R] a) { a = Mul(s, w) },
                        else_branch = ee () => (double[R] b2) { b2 = Sin(s) }>
        t = Concat<axis = 0>(v, w)
      }>
    })";
  check_text_grad(g, {{"n", number(3)}, {"x", vary({2}, 1)}, {"w", vary({1}, 2)}}, {"x", "w"});
}

TEST(Loop, InLoop) {
  const char* g = R"(
    g (int64 n, double[2] x, double[2] w) => (double[2] y) {
      y = Loop (n, , x) <body = b (int64 i, bool ci, double[2] s) => (bool co, double[2] t) {
        co = Identity(ci)
        t = Loop (n, , s) <body = b2 (int64 j, bool cj, double[2] p) => (bool ck, double[2] q) {
          ck = Identity(cj)
          r = Mul(p, w)
          q = Add(r, x)
        }>
      }>
    })";
  check_text_grad(g, {{"n", number(2)}, {"x", vary({2}, 1)}, {"w", vary({2}, 2)}}, {"x", "w"});
}

TEST(Loop, EndlessIsRefused) {
  auto m = text_model(R"(
    g (float[1] x) => (float[1] y) {
      y = Loop (, , x) <body = b (int64 i, bool ci, float[1] s) => (bool co, float[1] t) { co = Identity(ci) t = Add(s, s) }>
    })");
  EXPECT_THROW(Session(m).run({{"x", random_tensor({1})}}), Error);
}

TEST(Loop, RandomNumbersDifferByIterationAndReturnInTheGradient) {
  const char* g = R"(
    g (int64 n, double[4] x) => (double[4] y, double[K,4] all) {
      y, all = Loop (n, , x) <body = b (int64 i, bool ci, double[4] s) => (bool co, double[4] t, double[4] r) {
        co = Identity(ci)
        r = RandomUniformLike(s)
        t = Mul(s, r)
      }>
    })";
  Feeds f = {{"n", number(3)}, {"x", vary({4}, 1)}};
  std::vector<double> all = text_output(g, f, 1);
  EXPECT_NE(all[0], all[4]);
  check_text_grad(g, f, {"x"});
}

TEST(Loop, Values) {
  Feeds f = {{"n", number(2)}, {"x", doubles({1, 2, 3})}, {"w", doubles({0, 0, 0})}};
  EXPECT_EQ(text_output(kLoop, f, 0), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(text_output(kLoop, f, 1), (std::vector<double>{0, 0, 0, 0, 0, 0}));
  f["w"] = doubles({1, 1, 1});
  EXPECT_NEAR(text_output(kLoop, f, 0)[1], std::sin(std::sin(2.0)), 1e-12);
}

TEST(Lists, AppendAndAt) {
  const char* g = R"(
    g (double[2] x, double[3] y, int64 i) => (double[K] z) {
      s = SequenceConstruct(x)
      l = ai.onnxtrain.ListAppend(s, y)
      z = ai.onnxtrain.ListAt(l, i)
    })";
  Feeds f = {{"x", doubles({1, 2})}, {"y", doubles({3, 4, 5})}, {"i", number(1)}};
  EXPECT_EQ(text_output(g, f), (std::vector<double>{3, 4, 5}));
  f["i"] = number(0);
  EXPECT_EQ(text_output(g, f), (std::vector<double>{1, 2}));
  f["i"] = number(2);
  EXPECT_THROW(text_output(g, f), Error);
}

}  // namespace onnxtrain::testing
