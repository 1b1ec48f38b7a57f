#include "convert/analysis/output_range.hpp"

#include <gtest/gtest.h>

#include "convert/prepare.hpp"
#include "convert/testing.hpp"

namespace onnxtrain {
namespace {

Model ending(const std::string& nodes) {
  return parse_model(cat(R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[N,3] x) => (float[N,2] y) <float[3,2] w = {1,2,3,4,5,6}, float[2] b = {0,1}, float lo = {0}, float hi = {1}>
{ h = MatMul(x, w)  z = Add(h, b) )",
                         nodes, " }"),
                     all_ops());
}

OutputRange range_of(const std::string& nodes) {
  const Model m = ending(nodes);
  return output_range(m.main, m.main.outputs[0]);
}

TEST(OutputRange, ByTheLastOperators) {
  for (const char* raw : {"y = Identity(z)", "y = Mul(z, b)", "s = Relu(z)  y = Add(z, b)"})
    EXPECT_TRUE(range_of(raw).raw) << raw;
  for (const char* unit : {"y = Sigmoid(z)", "y = Softmax(z)", "y = Clip(z, lo, hi)",
                           "s = Sigmoid(z)  y = Identity(s)", "y = HardSigmoid(z)"}) {
    EXPECT_TRUE(range_of(unit).in(0, 1)) << unit;
    EXPECT_FALSE(range_of(unit).raw) << unit;
  }
  EXPECT_TRUE(range_of("y = Tanh(z)").in(-1, 1));
  EXPECT_EQ(range_of("y = Relu(z)").low, 0);
  EXPECT_EQ(range_of("y = LogSoftmax(z)").high, 0);
  const OutputRange unknown = range_of("e = Exp(z)  y = Div(e, e)");
  EXPECT_FALSE(unknown.raw);
  EXPECT_FALSE(unknown.in(-1e9, 1e9));
}

TEST(OutputRange, ScoresBeforeAnActivation) {
  const Model m = ending("e = Exp(z)  t = Mul(e, e)  y = Div(t, e)");
  const ValueId v = scores_before(m.main, m.main.outputs[0]);
  ASSERT_NE(v, kNone);
  EXPECT_EQ(m.main.value_name(v), "z");
}

TEST(ChooseLoss, ATensorThatGoesIntoAnActivationOfAnOutput) {
  EXPECT_EQ(choose_loss(ending("y = Sigmoid(z)"), "z").kind, "bce_logits");
  EXPECT_EQ(choose_loss(ending("y = Softmax(z)"), "z").kind, "cross_entropy");
  EXPECT_EQ(choose_loss(ending("s = Sigmoid(z)  y = Mul(s, z)"), "z").kind, "cross_entropy");
}

}  // namespace
}  // namespace onnxtrain
