// Weights in attributes: made trainable, trained, written back into the operator; hostile metadata.
#include "convert/analysis/attribute_weights.hpp"

#include <gtest/gtest.h>

#include "convert/prepare.hpp"
#include "engine/session.hpp"
#include "onnx/onnx.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain {
namespace {

constexpr const char* kKept = "onnxtrain.attribute_weights";

Model ml(const std::string& outputs, const std::string& node) {
  return parse_model(cat(R"(<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]>
net (float[N,2] x) => ()",
                         outputs, ") {", node, "}"),
                     all_ops());
}

const char* kTwoClasses =
    "label, p = ai.onnx.ml.LinearClassifier <classlabels_ints = [4, 9], coefficients = [-1.0, "
    "-2.0, 1.0, 2.0], intercepts = [-0.5, 0.5], post_transform = \"LOGISTIC\"> (x)";

Recipe recipe(const char* loss, const char* output) {
  Recipe r;
  LossTerm t;
  t.kind = loss;
  t.output = output;
  r.losses = {t};
  return r;
}

std::map<std::string, Tensor> run(const Model& m) {
  Feeds feeds;
  feeds["x"] = testing::random_tensor({5, 2}, -1, 1, 3);
  auto out = Session(std::make_shared<const Model>(m)).run(feeds);
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, value] : out) tensors[name] = std::get<Tensor>(value);
  return tensors;
}

// The state variable whose name ends so.
std::string weight(const Model& m, const std::string& end) {
  for (const std::string& name : m.state_names())
    if (name.ends_with(end)) return name;
  return {};
}

void expect_same(const Model& a, const Model& b) {
  auto x = run(a), y = run(b);
  ASSERT_EQ(x.size(), y.size());
  for (const auto& [name, t] : x) {
    std::vector<double> u = t.to_doubles(), v = y.at(name).to_doubles();
    ASSERT_EQ(u.size(), v.size());
    for (size_t k = 0; k < u.size(); ++k) EXPECT_NEAR(u[k], v[k], 1e-6) << name;
  }
}

TEST(AttributeWeights, TwoMirroredRowsAreOneWeight) {
  Model plain = ml("int64[N] label, float[N,2] p", kTwoClasses);
  Model m = prepare(plain, recipe("auto", "p"), all_ops());
  EXPECT_EQ(m.metadata["onnxtrain.loss"], "cross_entropy");
  const Tensor* w = m.initializer(weight(m, ".coefficients"));
  ASSERT_NE(w, nullptr);
  EXPECT_EQ(w->shape(), (Shape{1, 2}));
  expect_same(plain, m);
  m.set_initializer(weight(m, ".coefficients"),
                    Tensor::vector<float>({3.f, -7.f}).reshaped({1, 2}));
  Model out = with_attribute_weights(m, all_ops());
  ASSERT_EQ(out.main.nodes.size(), 1u);
  EXPECT_EQ(out.main.nodes[0].floats("coefficients"), (std::vector<float>{-3, 7, 3, -7}));
  EXPECT_EQ(out.metadata.count(kKept), 0u);
  expect_same(out, m);
}

TEST(AttributeWeights, LeavesOfTrees) {
  Model plain = ml("float[N,1] y",
                   "y = ai.onnx.ml.TreeEnsembleRegressor <n_targets = 1, base_values = [0.25], "
                   "nodes_treeids = [0, 0, 0, 1], nodes_nodeids = [0, 1, 2, 0], "
                   "nodes_featureids = [1, 0, 0, 0], nodes_values = [0.1, 0.0, 0.0, 0.0], "
                   "nodes_modes = [\"BRANCH_LEQ\", \"LEAF\", \"LEAF\", \"LEAF\"], "
                   "nodes_truenodeids = [1, 0, 0, 0], nodes_falsenodeids = [2, 0, 0, 0], "
                   "target_treeids = [0, 0, 1], target_nodeids = [1, 2, 0], "
                   "target_ids = [0, 0, 0], target_weights = [1.0, -2.0, 0.5]> (x)");
  Model m = prepare(plain, recipe("mse", "y"), all_ops());
  ASSERT_NE(m.initializer(weight(m, ".leaves")), nullptr);
  expect_same(plain, m);
  m.set_initializer(weight(m, ".leaves"), Tensor::vector<float>({5.f, 6.f, 7.f}).reshaped({3, 1}));
  Model out = with_attribute_weights(m, all_ops());
  EXPECT_EQ(out.main.nodes.at(0).floats("target_weights"), (std::vector<float>{5, 6, 7}));
  expect_same(out, m);
}

TEST(AttributeWeights, SurvivesTheFile) {
  Model m =
      prepare(ml("int64[N] label, float[N,2] p", kTwoClasses), recipe("auto", "p"), all_ops());
  Model again = load_model_bytes(serialize_model(m, all_ops()), "", all_ops());
  Model out = with_attribute_weights(again, all_ops());
  EXPECT_EQ(out.main.nodes.size(), 1u);
  EXPECT_EQ(out.main.nodes[0].op, "LinearClassifier");
}

TEST(AttributeWeights, DamagedMetadataIsOneError) {
  Model m =
      prepare(ml("int64[N] label, float[N,2] p", kTwoClasses), recipe("auto", "p"), all_ops());
  const std::string good = m.metadata[kKept];
  auto damaged = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    m.metadata[kKept] = text.replace(at, from.size(), to);
    EXPECT_THROW(with_attribute_weights(m, all_ops()), Error) << from;
  };
  damaged("[{", "{");
  damaged("\"operator\":\"0", "\"operator\":\"zz");
  damaged("\"operator\":\"", "\"operator\":\"ffff");
  damaged("\"label\"", "\"nothing\"");
  damaged(weight(m, ".coefficients"), weight(m, ".intercepts"));
  damaged("\"weights\":[", "\"weights\":[7,");
  damaged("\"input\":\"x\"", "\"input\":[]");
  m.metadata[kKept] = "{\"a\": 1}";
  EXPECT_THROW(with_attribute_weights(m, all_ops()), Error);
}

TEST(AttributeWeights, WhatHasNoFormStaysAnOperator) {
  Model one = ml("float[N,1] y",
                 "y = ai.onnx.ml.SVMRegressor <coefficients = [1.0, 2.0], rho = [0.5], one_class = "
                 "1, kernel_type = \"LINEAR\"> (x)");
  EXPECT_FALSE(adopt_attribute_weights(one, all_ops()));
}

}  // namespace
}  // namespace onnxtrain
