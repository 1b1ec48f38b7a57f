// SequenceJoin and SequencePart: states of loops that are sequences.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"
#include "tests/support/text_case.hpp"

namespace onnxtrain::testing {

TEST(SequenceLists, Values) {
  const char* g = R"(
    g (double[1] x, double[1] y, double[1] z) => (double[3] all, double[2] part)
    <int64 one = {1}, int64 two = {2}> {
      a = SequenceConstruct(x)
      b = SequenceConstruct(y, z)
      j = ai.onnxtrain.SequenceJoin(a, b)
      all = ConcatFromSequence<axis = 0>(j)
      p = ai.onnxtrain.SequencePart(j, one, two)
      part = ConcatFromSequence<axis = 0>(p)
    })";
  Feeds f = {{"x", doubles({1})}, {"y", doubles({2})}, {"z", doubles({3})}};
  EXPECT_EQ(text_output(g, f, 0), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(text_output(g, f, 1), (std::vector<double>{2, 3}));
  check_text_grad(g, f, {"x", "y", "z"});
}

TEST(SequenceLists, OutsideIsAnError) {
  const char* g = R"(
    g (double[1] x, int64 first, int64 count) => (double[K] y) {
      s = SequenceConstruct(x, x)
      p = ai.onnxtrain.SequencePart(s, first, count)
      y = ConcatFromSequence<axis = 0>(p)
    })";
  auto part = [&](int64_t first, int64_t count) {
    return text_output(g,
                       {{"x", doubles({1})}, {"first", number(first)}, {"count", number(count)}});
  };
  EXPECT_EQ(part(1, 1), std::vector<double>{1});
  EXPECT_THROW(part(2, 1), Error);
  EXPECT_THROW(part(-1, 1), Error);
}

TEST(SequenceLists, AsLoopState) {
  const char* g = R"(
    g (int64 n, double[2] x, double[2] w) => (double[K,2] out)
    {
      s0 = SequenceConstruct(x)
      s1 = Loop (n, , s0) <body = b (int64 i, bool ci, seq(double[2]) s) => (bool co, seq(double[2]) t) {
        co = Identity(ci)
        last = SequenceAt(s, i)
        v = Mul(last, w)
        t = SequenceInsert(s, v)
      }>
      out = ConcatFromSequence<axis = 0, new_axis = 1>(s1)
    })";
  check_text_grad(g, {{"n", number(2)}, {"x", vary({2}, 1)}, {"w", vary({2}, 2)}}, {"x", "w"});
}

}  // namespace onnxtrain::testing
