// Gradient: replaced by ordinary nodes; the values of its outputs.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"
#include "tests/support/text_case.hpp"

namespace onnxtrain::testing {

TEST(GradientOperator, OfASquare) {
  const char* g = R"(
    g (double[3] x) => (double[3] dx, double y) {
      s = Mul(x, x)
      y = ReduceSum<keepdims = 0>(s)
      dx = ai.onnx.preview.training.Gradient<xs = ["x"], y = "y">(x)
    })";
  Feeds f = {{"x", doubles({1, -2, 3})}};
  EXPECT_EQ(text_output(g, f, 0), (std::vector<double>{2, -4, 6}));
  EXPECT_EQ(text_output(g, f, 1), std::vector<double>{14});
}

TEST(GradientOperator, NothingOfItReachesThePlan) {
  Session s(text_model(R"(
    g (double[3] x) => (double[3] dx) {
      y = ReduceSum<keepdims = 0>(x)
      dx = ai.onnx.preview.training.Gradient<xs = ["x"], y = "y">(x)
    })"));
  Feeds f = {{"x", doubles({1, 2, 3})}};
  for (const Node& n : s.plan_for(f).graph.nodes) EXPECT_NE(n.op, "Gradient");
  EXPECT_EQ(std::get<Tensor>(s.run(f)[0].second).to_doubles(), (std::vector<double>{1, 1, 1}));
}

}  // namespace onnxtrain::testing
