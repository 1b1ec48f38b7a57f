// Training-mode copies in files: evaluation is on the inference form of the model, whatever values
// are called.
#include <gtest/gtest.h>

#include "convert/prepare.hpp"
#include "convert/testing.hpp"
#include "onnx/testing.hpp"
#include "run/data/feeds.hpp"
#include "run/metrics/evaluate.hpp"

namespace onnxtrain::run {
namespace {

using testing_onnx::add_step;
using testing_onnx::bind_update;
using testing_onnx::load;

double loss_of(const Model& m, const std::string& label, const Tensor& x, const Tensor& target) {
  Training t(std::make_shared<const Model>(m), 0);
  const Dataset data = Dataset::from_tensors({{"x", x}, {label, target}});
  return Evaluator(t).evaluate(feeds_for(data, m, t.slots(), {}).feeds, x.shape()[0]).loss();
}

Tensor rows(std::vector<float> v, int64_t columns) {
  Tensor t(DType::kFloat, {int64_t(v.size()) / columns, columns});
  std::copy(v.begin(), v.end(), t.as<float>());
  return t;
}

std::vector<std::string> copies(const Model& m) {
  std::vector<std::string> list;
  for (const ValueDef& v : m.training[0].algorithm.values)
    if (v.inference_form != kNone)
      list.push_back(cat(v.name, " of ", m.main.value_name(v.inference_form)));
  std::sort(list.begin(), list.end());
  return list;
}

// A step with a loss over `scores`, made by `nodes` in the algorithm.
onnx::ModelProto foreign(const std::string& main, const std::string& nodes,
                         const std::string& scores) {
  auto m = testing_onnx::parse<onnx::ModelProto>(
      cat(R"(<ir_version: 8, opset_import: ["" : 17, "ai.onnx.preview.training" : 1]>
    main (float[N,2] x) => (float[N,2] y)
    <float[2] w = {1, 1}, float[2] b = {0, 0}, float[2] mean = {1, 2}, float[2] var = {4, 4}> )",
          main));
  add_step(m, cat(R"(step (float[N,2] t) => (float loss, float[2] w_new)
    <float one = {1}, float rate = {0.1}, bool yes = {1}, float half = {0.5}> { )",
                  nodes, "  d = Sub (", scores, R"(, t)
      q = Mul (d, d)
      loss = ReduceMean <keepdims = 0> (q)
      g = ai.onnx.preview.training.Gradient <xs = ["w"], zs = ["x", "t"], y = "loss"> (w, x, t)
      s = Mul (rate, g)
      w_new = Sub (w, s)
    })"));
  bind_update(m, 0, "w", "w_new");
  return m;
}

const char* kScale = "{ y = Mul (x, w) }";
// without epsilon the numbers below are exact
const char* kNorm =
    "{ h = BatchNormalization <epsilon = 0.0> (x, w, b, mean, var)  y = Identity (h) }";

TEST(Evaluate, AForeignValueThatHappensToBeCalledSo) {
  // y_train is not a copy of y: it is y + 1
  const Model m = load(foreign(kScale, "y_train = Add (y, one)", "y_train"), all_ops());
  EXPECT_DOUBLE_EQ(loss_of(m, "t", rows({1, 2, 3, 4}, 2), rows({1, 2, 3, 4}, 2)), 1);
}

TEST(Evaluate, ALabelThatHappensToBeCalledSo) {
  Recipe r;
  r.losses.resize(1);
  r.losses[0].kind = "mse";
  r.losses[0].label = "y_train";
  const Model m = prepare(parse_model(R"(<ir_version: 8, opset_import: ["" : 17]>
    line (float[N,2] x) => (float[N,2] y) <float[2] w = {1, 1}> { y = Mul (x, w) })",
                                      all_ops()),
                          r, all_ops());
  EXPECT_DOUBLE_EQ(loss_of(m, "y_train", rows({1, 2, 3, 4}, 2), rows({2, 3, 4, 5}, 2)), 1);
}

TEST(Evaluate, AForeignCopyUnderAnotherName) {
  // with its batch statistics the layer gives -1 and 1; with the stored ones 0 and 1
  const std::string nodes =
      "batch, m1, v1 = BatchNormalization <epsilon = 0.0, training_mode = 1> (x, w, b, mean, var)";
  const Model m = load(foreign(kNorm, nodes + " out = Identity (batch)", "out"), all_ops());
  const Tensor x = rows({1, 2, 3, 4}, 2);
  EXPECT_DOUBLE_EQ(loss_of(m, "t", x, rows({0, 0, 1, 1}, 2)), 0);
  // over other operands it is another layer, not a copy
  const std::string other =
      "two = Add (x, one)  batch, m1, v1 = BatchNormalization <epsilon = 0.0, training_mode = 1> "
      "(two, w, b, mean, var)";
  const Model n = load(foreign(kNorm, other, "batch"), all_ops());
  EXPECT_NEAR(loss_of(n, "t", x, rows({-1, -1, 1, 1}, 2)), 0, 1e-6);
}

TEST(Evaluate, DropoutIsOff) {
  const Model m = load(foreign("{ h = Dropout (x)  y = Mul (h, w) }",
                               "k = Dropout (x, half, yes)  z = Mul (k, w)", "z"),
                       all_ops());
  EXPECT_DOUBLE_EQ(loss_of(m, "t", rows({1, 2, 3, 4}, 2), rows({1, 2, 3, 4}, 2)), 0);
}

// Another framework adds noise in training, and takes the loss on what the output is made of.
TEST(Evaluate, WhatAToldCopyIsMadeOf) {
  const std::string nodes = "k = Add (x, one)  h_noisy = Mul (k, w)  y_noisy = Tanh (h_noisy)";
  onnx::ModelProto p = foreign("{ h = Mul (x, w)  y = Tanh (h) }", nodes, "h_noisy");
  const Tensor x = rows({1, 2, 3, 4}, 2);
  EXPECT_DOUBLE_EQ(loss_of(load(p, all_ops()), "t", x, x), 1);  // nothing is said
  auto* said = p.add_metadata_props();
  said->set_key("onnxtrain.inference_form");
  said->set_value(R"({"y_noisy": "y"})");
  p.mutable_training_info(0)->mutable_algorithm()->add_output()->set_name("y_noisy");
  const Model m = load(p, all_ops());
  EXPECT_DOUBLE_EQ(loss_of(m, "t", x, x), 0);
  EXPECT_EQ(copies(m), (std::vector<std::string>{"h_noisy of h", "k of x", "y_noisy of y"}));
  const Model again = load_model_bytes(serialize_model(m, all_ops()), "", all_ops());
  EXPECT_EQ(copies(again), copies(m));
}

// BatchNormalization, Dropout, and BatchNormalization as the output.
std::string network() {
  using testing::weights;
  return cat(R"(<ir_version: 8, opset_import: ["" : 17]>
net (float[N,4] x) => (float[N,3] logits) <)",
             weights("w1", {4, 6}, 1), ", ", weights("s", {6}, 2, 0.5, 1.5), ", ",
             weights("b", {6}, 3), ", ", weights("m", {6}, 4), ", ", weights("v", {6}, 5, 0.5, 2),
             ", ", weights("w2", {6, 3}, 6), ", ", weights("s2", {3}, 7, 0.5, 1.5), ", ",
             weights("b2", {3}, 8), ", ", weights("m2", {3}, 9), ", ",
             weights("v2", {3}, 10, 0.5, 2), R"(, float ratio = {0.5}>
{
  a = MatMul (x, w1)
  n = BatchNormalization (a, s, b, m, v)
  h = Relu (n)
  d = Dropout (h, ratio)
  c = MatMul (d, w2)
  logits = BatchNormalization (c, s2, b2, m2, v2)
})");
}

TEST(Evaluate, CopiesSurviveTheFile) {
  double want = 0;
  for (bool lowered : {false, true}) {
    SCOPED_TRACE(lowered);
    Recipe r;
    r.lowered = lowered;
    const Model made = prepare(parse_model(network(), all_ops()), r, all_ops());
    const Model read = load_model_bytes(serialize_model(made, all_ops()), "", all_ops());
    EXPECT_EQ(copies(made), copies(read));
    EXPECT_EQ(copies(read).size(), 5u);
    EXPECT_EQ(read.metadata.contains("onnxtrain.inference_form"), lowered);
    const Tensor x = testing::random_tensor({20, 4}, -1, 1, 5);
    const Tensor label = testing::random_ints({20}, 0, 3, 6);
    const double loss = loss_of(made, "label", x, label);
    EXPECT_EQ(loss, loss_of(read, "label", x, label));
    if (!lowered) want = loss;
    EXPECT_EQ(loss, want);
  }
}

TEST(Evaluate, LoweredFilesOfEarlierVersionsSaidItByName) {
  Recipe r;
  r.lowered = true;
  Model made = prepare(parse_model(R"(<ir_version: 8, opset_import: ["" : 17]>
    net (float[N,2] x) => (float[N,2] y)
    <float[2] w = {1, 1}, float[2] b = {0, 0}, float[2] mean = {1, 2}, float[2] var = {4, 4}>
    { h = BatchNormalization (x, w, b, mean, var)  y = Tanh (h) })",
                                   all_ops()),
                       r, all_ops());
  const Tensor x = rows({1, 2, 3, 4}, 2), label = rows({0, 1, 0, 1}, 2);
  const double want = loss_of(made, "label", x, label);
  onnx::ModelProto p;
  ASSERT_TRUE(p.ParseFromString(serialize_model(made, all_ops())));
  auto* list = p.mutable_metadata_props();
  for (int k = list->size(); k-- > 0;)
    if (list->Get(k).key() == "onnxtrain.inference_form") list->DeleteSubrange(k, 1);
  EXPECT_EQ(list->size(), made.metadata.size());
  EXPECT_EQ(loss_of(load(p, all_ops()), "label", x, label), want);
}

}  // namespace
}  // namespace onnxtrain::run
