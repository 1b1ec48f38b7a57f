// What exporters do to weights: merged, copied and folded tensors, and what is no weight at all.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "convert/prepare.hpp"
#include "convert/step/training_mode.hpp"
#include "convert/testing.hpp"
#include "engine/training.hpp"
#include "onnx/onnx.hpp"

namespace onnxtrain {
namespace {

using testing::weights;

std::vector<LossTerm> loss(const char* kind) {
  LossTerm t;
  t.kind = kind;
  return {t};
}

std::vector<std::string> trained(const Model& m, Recipe r = {}) {
  if (r.losses.empty()) r.losses = loss("mse");
  std::vector<std::string> names = trainable_parameters(m, r);
  std::sort(names.begin(), names.end());
  return names;
}

Model net(const std::string& initializers, const std::string& nodes) {
  return parse_model(cat(R"(<ir_version: 8, opset_import: ["" : 17]>
net (float[N,4] x) => (float[N,4] y)
<)",
                         initializers, "> {", nodes, "}"),
                     all_ops());
}

using Names = std::vector<std::string>;

TEST(Merged, ClonedLayersPartAndTiedOnesStay) {
  // two parameters that an exporter merged: both sides have names of parameters
  Model cloned =
      net(weights("a_weight", {4, 4}, 1),
          "b_weight = Identity (a_weight) h = MatMul (x, a_weight) y = MatMul (h, b_weight)");
  EXPECT_EQ(trained(cloned), (Names{"a_weight", "b_weight"}));
  // a value inside the graph is no parameter
  Model used = net(weights("a_weight", {4, 4}, 1),
                   "onnx__Identity_3 = Identity (a_weight) w = Relu (onnx__Identity_3) "
                   "h = MatMul (x, a_weight) y = MatMul (h, w)");
  used.edit_main().value(used.main.find("onnx__Identity_3")).name = "/Identity_output_0";
  EXPECT_EQ(trained(used), (Names{"a_weight"}));
}

Model embedding(const Tensor& table, const Tensor& head) {
  Model m = parse_model(R"(<ir_version: 8, opset_import: ["" : 17]>
net (int64[N,3] ids) => (float[N,3,5] y)
<float[5,2] wte = {1,2,3,4,5,6,7,8,9,10}, float[2,5] folded = {1,3,5,7,9,2,4,6,8,10}>
{ e = Gather (wte, ids) y = MatMul (e, folded) })",
                        all_ops());
  m.set_initializer("wte", table);
  m.set_initializer("folded", head);
  return m;
}

TEST(Merged, FoldedEmbeddingIsTiedAgain) {
  Tensor a = testing::random_tensor({5, 2}, -1, 1, 3), b(DType::kFloat, {2, 5});
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 2; ++j) b.as<float>()[j * 5 + i] = a.as<float>()[i * 2 + j];
  Recipe r;
  r.losses = loss("cross_entropy");
  r.optimizer.kind = "sgd";
  EXPECT_EQ(trained(embedding(a, b), r), (Names{"wte"}));
  Model m = prepare(embedding(a, b), r, all_ops());
  EXPECT_EQ(m.main.nodes.size(), 3u);
  for (const Finding& f : check_model_bytes(serialize_model(m, all_ops()), "", all_ops()))
    EXPECT_NE(f.level, Finding::Level::kError) << f.message;
  Training t(std::make_shared<Model>(m), 0);
  t.step({{"ids", testing::random_ints({2, 3}, 0, 5, 4)},
          {"label", testing::random_ints({2, 3}, 0, 5, 5)}});
  // another table: two parameters
  Tensor c = b.clone();
  c.as<float>()[3] += 1;
  EXPECT_EQ(trained(embedding(a, c), r), (Names{"folded", "wte"}));
}

TEST(Merged, WeightsInConstantNodes) {
  Model m =
      net("int64[1] k = {1}",
          "w = Constant <value = float[4,4] {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}> () "
          "b = Constant <value = float[4] {1,2,3,4}> () two = Constant <value_float = 2.0> () "
          "h = MatMul (x, w) g = Add (h, b) y = Mul (g, two)");
  EXPECT_EQ(trained(m), (Names{"b", "w"}));
  Recipe r;
  r.losses = loss("mse");
  Model p = prepare(m, r, all_ops());
  for (const Finding& f : check_model_bytes(serialize_model(p, all_ops()), "", all_ops()))
    EXPECT_NE(f.level, Finding::Level::kError) << f.message;
  // beside initializers, constants are constants
  m = net(weights("w", {4, 4}, 1),
          "b = Constant <value = float[4] {1,2,3,4}> () h = MatMul (x, w) y = Add (h, b)");
  EXPECT_EQ(trained(m), (Names{"w"}));
}

TEST(Tables, MasksSinesAndFillingsAreNoWeights) {
  Model m =
      net(cat(weights("w", {4, 4}, 1),
              ", float[2] mask = {0, -10000}, float[4] val_7 = {1, 1, 1, 1}, float val_8 = {0.5}, "
              "float[4] bias = {0, 0, 0, 0}, float[8,2] table = {0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}, "
              "int64[1] three = {3}, int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}"),
          "h = MatMul (x, w) a = Mul (h, val_7) b = Mul (a, val_8) c = Add (b, bias) "
          "d = Slice (table, two, three, zero) e = Concat <axis = 1> (d, d) f = Add (c, e) "
          "g = Slice (mask, zero, one, zero) y = Add (f, g)");
  Tensor sines(DType::kFloat, {8, 2});
  for (int p = 0; p < 8; ++p)
    for (int j = 0; j < 2; ++j)
      sines.as<float>()[p * 2 + j] = float(std::sin(p * (j == 0 ? 1.0 : 0.01) + 0.3));
  m.set_initializer("table", sines);
  EXPECT_EQ(trained(m), (Names{"bias", "w"}));
  // asked for by name it is trained; a glob does not ask
  Recipe r;
  r.only = {"table"};
  EXPECT_EQ(trained(m, r), (Names{"table"}));
  r.only = {"*"};
  EXPECT_EQ(trained(m, r), (Names{"bias", "w"}));
  // a table that was learned
  sines.as<float>()[5] += 0.01f;
  m.set_initializer("table", sines);
  EXPECT_EQ(trained(m), (Names{"bias", "table", "w"}));
}

TEST(Sections, AppendKeepsTheOthers) {
  Model m = net(cat(weights("g", {4, 4}, 1), ", ", weights("d", {4, 4}, 2)),
                "h = MatMul (x, g) y = MatMul (h, d)");
  Recipe r;
  r.losses = loss("mse");
  r.optimizer.kind = "adam";
  r.only = {"d"};
  m = prepare(m, r, all_ops());
  r.only = {"g"};
  r.append = true;
  m = prepare(m, r, all_ops());
  ASSERT_EQ(m.training.size(), 2u);
  for (const Finding& f : check_model_bytes(serialize_model(m, all_ops()), "", all_ops()))
    EXPECT_NE(f.level, Finding::Level::kError) << f.rule << f.message;
  Model again = load_model_bytes(serialize_model(m, all_ops()), "", all_ops());
  Training t(std::make_shared<Model>(again), 0);
  Feeds f = {{"x", testing::random_tensor({3, 4}, -1, 1, 7)},
             {"label", testing::random_tensor({3, 4}, -1, 1, 8)}};
  std::vector<double> d = t.state().get("d").to_doubles(), g = t.state().get("g").to_doubles();
  t.step(f, 1);
  EXPECT_EQ(t.state().get("d").to_doubles(), d);
  EXPECT_NE(t.state().get("g").to_doubles(), g);
  r.append = false;
  EXPECT_EQ(prepare(m, r, all_ops()).training.size(), 1u);
}

}  // namespace
}  // namespace onnxtrain
