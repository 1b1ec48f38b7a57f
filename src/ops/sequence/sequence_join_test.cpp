// SplitToSequence, ConcatFromSequence and their gradient operators.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"
#include "tests/support/text_case.hpp"

namespace onnxtrain::testing {

TEST(SequenceJoin, Values) {
  const char* g = R"(
    g (double[5] x) => (double[2] a, double[1] c, double[5] all, double[2,2] stacked)
    <int64 two = {2}, int64 zero = {0}, int64 last = {-1}> {
      s = SplitToSequence<axis = 0>(x, two)
      a = SequenceAt(s, zero)
      c = SequenceAt(s, last)
      all = ConcatFromSequence<axis = 0>(s)
      t = SequenceErase(s, last)
      stacked = ConcatFromSequence<axis = 0, new_axis = 1>(t)
    })";
  Feeds f = {{"x", doubles({1, 2, 3, 4, 5})}};
  EXPECT_EQ(text_output(g, f, 0), (std::vector<double>{1, 2}));
  EXPECT_EQ(text_output(g, f, 1), std::vector<double>{5});
  EXPECT_EQ(text_output(g, f, 2), (std::vector<double>{1, 2, 3, 4, 5}));
  EXPECT_EQ(text_output(g, f, 3), (std::vector<double>{1, 2, 3, 4}));
  check_text_grad(g, f, {"x"});
}

TEST(SequenceJoin, SplitLikeAndAddValues) {
  const char* g = R"(
    g (double[5] x, double[2] p, double[3] q) => (double[5] y, double[2] first) <int64 zero = {0}> {
      like = SequenceConstruct(p, q)
      s = ai.onnxtrain.SplitLikeSequence<axis = 0>(x, like)
      t = ai.onnxtrain.AddValues(s, like)
      y = ConcatFromSequence<axis = 0>(t)
      first = SequenceAt(s, zero)
    })";
  Feeds f = {
      {"x", doubles({1, 2, 3, 4, 5})}, {"p", doubles({10, 20})}, {"q", doubles({30, 40, 50})}};
  EXPECT_EQ(text_output(g, f, 0), (std::vector<double>{11, 22, 33, 44, 55}));
  EXPECT_EQ(text_output(g, f, 1), (std::vector<double>{1, 2}));
  check_text_grad(g, f, {"x"});
}

}  // namespace onnxtrain::testing
