// Sequences: construction, access, insertion, removal; gradients through all of it.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"
#include "tests/support/text_case.hpp"

namespace onnxtrain::testing {

TEST(Sequences, GradientThroughAllOperators) {
  const char* g = R"(
    g (double[2] x, double[2] y, double[4] z) => (double[M] out, double[2] one) {
      s0 = SequenceConstruct(x, y)
      parts = SplitToSequence<axis = 0>(z, two)
      first = SequenceAt(parts, minus_one)
      s1 = SequenceInsert(s0, first, one_i)
      s2 = SequenceErase(s1, minus_three)
      s3 = SequenceMap (s2) <body = b (double[2] item) => (double[2] r) { q = Mul(item, x) r = Sin(q) }>
      out = ConcatFromSequence<axis = 0>(s3)
      one = SequenceAt(s3, zero)
    })";
  std::string text = g;
  text.replace(text.find("=> (double[M] out, double[2] one) {"), 35,
               "=> (double[M] out, double[2] one) <int64 two = {2}, int64 minus_one = {-1}, int64 "
               "minus_three = {-3}, "
               "int64 one_i = {1}, int64 zero = {0}> {");
  check_text_grad(text, {{"x", vary({2}, 1)}, {"y", vary({2}, 2)}, {"z", vary({4}, 3)}},
                  {"x", "y", "z"});
}

TEST(Sequences, Values) {
  const char* g = R"(
    g (double[2] x, double[2] y, double[2] z) => (int64 n, double[2] a, double[2] b, int64 empty)
    <int64 zero = {0}, int64 one = {1}, int64 last = {-1}> {
      s = SequenceConstruct(x, y)
      t = SequenceInsert(s, z, one)
      n = SequenceLength(t)
      a = SequenceAt(t, one)
      u = SequenceErase(t, zero)
      b = SequenceAt(u, last)
      e = SequenceEmpty<dtype = 11>()
      empty = SequenceLength(e)
    })";
  Feeds f = {{"x", doubles({1, 2})}, {"y", doubles({3, 4})}, {"z", doubles({5, 6})}};
  EXPECT_EQ(text_output(g, f, 0), std::vector<double>{3});
  EXPECT_EQ(text_output(g, f, 1), (std::vector<double>{5, 6}));
  EXPECT_EQ(text_output(g, f, 2), (std::vector<double>{3, 4}));
  EXPECT_EQ(text_output(g, f, 3), std::vector<double>{0});
}

TEST(Sequences, OutsideIsAnError) {
  const char* g = R"(
    g (double[2] x, int64 i) => (double[2] y) { s = SequenceConstruct(x) y = SequenceAt(s, i) })";
  EXPECT_EQ(text_output(g, {{"x", doubles({1, 2})}, {"i", number(-1)}}),
            (std::vector<double>{1, 2}));
  for (int64_t i : {1, -2})
    EXPECT_THROW(text_output(g, {{"x", doubles({1, 2})}, {"i", number(i)}}), Error);
}

}  // namespace onnxtrain::testing
