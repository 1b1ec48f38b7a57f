// Training-mode copies: statistics, dropout, files already in training form, frozen layers.
#include <gtest/gtest.h>

#include <cmath>

#include "convert/prepare.hpp"
#include "engine/training.hpp"
#include "onnx/onnx.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain {
namespace {

using testing::random_ints;
using testing::random_tensor;

// x -> BatchNormalization -> Gemm, with the layer as written in `norm`.
Model model(const std::string& norm, int opset = 17) {
  std::string text = cat(R"(<ir_version: 8, opset_import: ["" : )", opset, R"(]>
net (float[N,3] x) => (float[N,2] y)
<float[3] scale = {1, 1, 1}, float[3] bias = {0, 0, 0}, float[3] mean = {0.5, 0, -0.5}, float[3] var = {1, 2, 3},
 float[2,3] w = {0.1, -0.2, 0.3, 0.4, 0.5, -0.6}, float ratio = {0.25}, bool yes = {1}>
{
  )",
                         norm, R"(
  y = Gemm <transB = 1> (h, w)
})");
  return parse_model(text, all_ops());
}

const char* kNorm = "h = BatchNormalization <momentum = 0.8> (x, scale, bias, mean, var)";

Feeds batch() {
  Tensor x = random_tensor({8, 3}, -1, 2, 3);
  return {{"x", x}, {"label", random_ints({8}, 0, 2, 4)}};
}

std::vector<double> values(Training& t, const char* name) {
  return t.state().get(name).to_doubles();
}

void expect_statistics(const Model& m, bool unbiased) {
  Training t(std::make_shared<Model>(m), 0);
  Feeds f = batch();
  const Tensor& x = std::get<Tensor>(f.at("x"));
  t.step(f);
  std::vector<double> mean = values(t, "mean"), var = values(t, "var");
  const double old_mean[] = {0.5, 0, -0.5}, old_var[] = {1, 2, 3};
  for (int c = 0; c < 3; ++c) {
    double s = 0, q = 0;
    for (int i = 0; i < 8; ++i) s += x.as<float>()[i * 3 + c];
    s /= 8;
    for (int i = 0; i < 8; ++i) q += std::pow(x.as<float>()[i * 3 + c] - s, 2);
    q /= unbiased ? 7 : 8;
    EXPECT_NEAR(mean[size_t(c)], 0.8 * old_mean[c] + 0.2 * s, 1e-6);
    EXPECT_NEAR(var[size_t(c)], 0.8 * old_var[c] + 0.2 * q, 1e-6);
  }
}

void expect_valid(const Model& m) {
  for (const Finding& f : check_model_bytes(serialize_model(m, all_ops()), "", all_ops()))
    EXPECT_NE(f.level, Finding::Level::kError) << f.code << " " << f.rule << ": " << f.message;
}

TEST(TrainingMode, RunningStatisticsFollowPyTorchsRule) {
  Recipe r;
  for (int opset : {13, 14, 17, 22}) {
    SCOPED_TRACE(opset);
    Model m = prepare(model(kNorm, opset), r, all_ops());
    expect_statistics(m, true);
    if (opset >= 15) expect_valid(m);
  }
  r.bn_variance = "onnx";
  expect_statistics(prepare(model(kNorm), r, all_ops()), false);
}

TEST(TrainingMode, TheMainGraphStaysInference) {
  Model m = prepare(model(kNorm), {}, all_ops());
  EXPECT_EQ(m.main.nodes.size(), 2u);
  EXPECT_EQ(m.main.nodes[0].i("training_mode", 0), 0);
  EXPECT_FALSE(m.main_generated());
}

TEST(TrainingMode, TrainingFormBecomesInferenceInMain) {
  Model m = prepare(model("h, m1, v1 = BatchNormalization <momentum = 0.8, training_mode = 1> (x, "
                          "scale, bias, mean, var)"),
                    {}, all_ops());
  EXPECT_TRUE(m.main_generated());
  EXPECT_EQ(m.main.nodes[0].i("training_mode", 0), 0);
  EXPECT_EQ(m.main.nodes[0].outputs.size(), 1u);
  expect_statistics(m, true);
  expect_valid(m);
  m = prepare(model("h = Dropout (x, ratio, yes)"), {}, all_ops());
  EXPECT_LE(m.main.nodes[0].inputs.size(), 2u);
  expect_valid(m);
}

TEST(TrainingMode, DropoutIsActiveInTrainingOnly) {
  Model m = prepare(model("h = Dropout (x, ratio)"), {}, all_ops());
  expect_valid(m);
  Training a(std::make_shared<Model>(m), 1), b(std::make_shared<Model>(m), 1),
      c(std::make_shared<Model>(m), 2);
  double first = a.step(batch()).loss;
  EXPECT_EQ(first, b.step(batch()).loss);
  EXPECT_NE(first, c.step(batch()).loss);
  Recipe r;
  r.mode = "as_is";
  Training d(std::make_shared<Model>(prepare(model("h = Dropout (x, ratio)"), r, all_ops())), 1);
  EXPECT_NE(first, d.step(batch()).loss);
}

TEST(TrainingMode, FrozenLayersStayInInference) {
  Recipe r;
  r.freeze = {"scale", "bias"};
  Model m = prepare(model(kNorm), r, all_ops());
  std::vector<std::string> names = m.state_names();
  EXPECT_EQ(std::find(names.begin(), names.end(), "mean"), names.end());
}

TEST(TrainingMode, NothingToSwitchNoCopy) {
  Model m = prepare(model("h = Tanh (x)"), {}, all_ops());
  for (const Node& n : m.training[0].algorithm.nodes) EXPECT_NE(n.op, "Gemm");
}

}  // namespace
}  // namespace onnxtrain
