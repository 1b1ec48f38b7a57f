// DeferredGradient: a body that is specialised to the shapes it gets.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"
#include "tests/support/text_case.hpp"

namespace onnxtrain::testing {

TEST(DeferredGradient, RunsItsBodyOnWhatComes) {
  // how many rows NonZero gives is known only in the run
  const char* g = R"(
    g (double[N] x) => (int64[M] y) {
      at = NonZero(x)
      y = ai.onnxtrain.DeferredGradient (at) <body = b (int64[1,K] a) => (int64[K2] z) {
        s = Shape(a)
        two = Constant<value_int = 2>()
        d = Mul(a, two)
        z = Flatten<axis = 0>(d)
      }>
    })";
  EXPECT_EQ(text_output(g, {{"x", doubles({0, 1, 1, 0, 1})}}), (std::vector<double>{2, 4, 8}));
  EXPECT_EQ(text_output(g, {{"x", doubles({1})}}), std::vector<double>{0});
}

}  // namespace onnxtrain::testing
