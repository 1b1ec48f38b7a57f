// SequenceMap: values and gradients.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"
#include "tests/support/text_case.hpp"

namespace onnxtrain::testing {

TEST(SequenceMap, ValuesAndGradient) {
  const char* g = R"(
    g (double[2] x, double[2] y, double[2] w) => (double[4] out, double[2] second) <int64 one = {1}> {
      s = SequenceConstruct(x, y)
      t, u = SequenceMap (s, w) <body = b (double[2] item, double[2] factor) => (double[2] r, double[2] q) {
        r = Mul(item, factor)
        q = Add(item, factor)
      }>
      out = ConcatFromSequence<axis = 0>(t)
      second = SequenceAt(u, one)
    })";
  Feeds f = {{"x", doubles({1, 2})}, {"y", doubles({3, 4})}, {"w", doubles({10, 100})}};
  EXPECT_EQ(text_output(g, f, 0), (std::vector<double>{10, 200, 30, 400}));
  EXPECT_EQ(text_output(g, f, 1), (std::vector<double>{13, 104}));
  check_text_grad(g, f, {"x", "y", "w"});
}

}  // namespace onnxtrain::testing
