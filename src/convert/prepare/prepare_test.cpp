// Prepared models: what they contain, that they are valid files, that they train.
#include "convert/prepare.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "convert/step/schedules.hpp"
#include "convert/testing.hpp"
#include "engine/training.hpp"

namespace onnxtrain {
namespace {

using testing::random_ints;
using testing::random_tensor;

Model mlp(const char* tail = "logits = Gemm <transB = 1> (h, w2, b2)",
          const char* out = "float[N,3] logits") {
  using testing::weights;
  return parse_model(cat(R"(<ir_version: 8, opset_import: ["" : 17]>
mlp (float[N,4] x) => ()",
                         out, ")\n<", weights("w1", {8, 4}, 1), ", ", weights("b1", {8}, 2), ", ",
                         weights("w2", {3, 8}, 3), ", ", weights("b2", {3}, 4), R"(>
{
  a = Gemm <transB = 1> (x, w1, b1)
  h = Tanh (a)
  )",
                         tail, "\n}\n"),
                     all_ops());
}

Feeds batch(uint64_t seed = 7) {
  return {{"x", random_tensor({16, 4}, -1, 1, seed)}, {"label", random_ints({16}, 0, 3, seed + 1)}};
}

void expect_valid(const Model& m) {
  std::string bytes = serialize_model(m, all_ops());
  for (const Finding& f : check_model_bytes(bytes, "", all_ops()))
    EXPECT_NE(f.level, Finding::Level::kError) << f.code << " " << f.rule << ": " << f.message;
}

// Losses of `steps` steps, and the same from the file.
std::vector<double> train(const Model& m, const Feeds& feeds, int steps) {
  expect_valid(m);
  Training t(std::make_shared<Model>(m), 0);
  Training from_file(
      std::make_shared<Model>(load_model_bytes(serialize_model(m, all_ops()), "", all_ops())), 0);
  std::vector<double> losses;
  for (int k = 0; k < steps; ++k) {
    losses.push_back(t.step(feeds).loss);
    EXPECT_EQ(from_file.step(feeds).loss, losses.back()) << "step " << k << " of the file differs";
  }
  return losses;
}

TEST(Prepare, TrainsAnMlpWithEveryOptimizer) {
  for (const char* kind :
       {"sgd", "adam", "adamw", "momentum", "nesterov", "adagrad", "rmsprop", "lion", "lamb"}) {
    Recipe r;
    r.optimizer.kind = kind;
    if (std::string(kind) == "lion") r.optimizer.lr = 0.01;
    SCOPED_TRACE(kind);
    std::vector<double> l = train(prepare(mlp(), r, all_ops()), batch(), 20);
    EXPECT_LT(l.back(), l.front());
  }
}

TEST(Prepare, FirstOutputIsTheLossAndStateIsBound) {
  Model m = prepare(mlp(), {}, all_ops());
  ASSERT_EQ(m.training.size(), 1u);
  const TrainingStep& t = m.training[0];
  EXPECT_EQ(t.algorithm.value_name(t.algorithm.outputs[0]), "loss");
  EXPECT_EQ(m.metadata.at("onnxtrain.rate"), "learning_rate");
  auto names = m.state_names();
  for (const char* want : {"w1", "b1", "w2", "b2", "T"})
    EXPECT_NE(std::find(names.begin(), names.end(), want), names.end()) << want;
  EXPECT_EQ(std::find(names.begin(), names.end(), "learning_rate"), names.end());
}

TEST(Prepare, ParametersFreezeAndOnly) {
  Recipe r;
  EXPECT_EQ(trainable_parameters(mlp(), r), (std::vector<std::string>{"w1", "b1", "w2", "b2"}));
  r.freeze = {"b*"};
  EXPECT_EQ(trainable_parameters(mlp(), r), (std::vector<std::string>{"w1", "w2"}));
  r.only = {"?2"};
  EXPECT_EQ(trainable_parameters(mlp(), r), (std::vector<std::string>{"w2"}));
  r.only = {"nothing"};
  EXPECT_THROW(trainable_parameters(mlp(), r), Error);
  r.only.clear();
  r.freeze = {"w2", "w3"};
  try {
    trainable_parameters(mlp(), r);
    FAIL() << "a name that is not there was taken";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "OT1250");
  }
}

TEST(Prepare, SlopesOfAPReluAreWeightsUnderAMadeUpName) {
  Model m = parse_model(cat(R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[N,4] x) => (float[N,3] logits)
<)",
                            testing::weights("w", {3, 4}, 1), R"(, float[1] val_3 = {0.25}>
{
  a = Gemm <transB = 1> (x, w)
  logits = PRelu (a, val_3)
}
)"),
                        all_ops());
  EXPECT_EQ(trainable_parameters(m, {}), (std::vector<std::string>{"w", "val_3"}));
}

TEST(ChooseLoss, ExplainsItself) {
  EXPECT_EQ(choose_loss(mlp()).kind, "cross_entropy");
  EXPECT_EQ(choose_loss(mlp()).because, "'logits' is [N,3] float with no Softmax at the end");
  EXPECT_EQ(
      choose_loss(mlp("z = Gemm <transB = 1> (h, w2, b2)\n p = Softmax (z)", "float[N,3] p")).kind,
      "cross_entropy");
  EXPECT_EQ(
      choose_loss(mlp("z = Gemm <transB = 1> (h, w2, b2)\n p = LogSoftmax (z)", "float[N,3] p"))
          .kind,
      "nll");
  EXPECT_EQ(
      choose_loss(mlp("z = Gemm <transB = 1> (h, w2, b2)\n p = Sigmoid (z)", "float[N,3] p")).kind,
      "bce_logits");
}

// Softmax at the end or not: the same loss, because it is computed before it.
TEST(Prepare, CrossEntropyReadsTheScoresBeforeSoftmax) {
  Recipe r;
  auto a = train(prepare(mlp(), r, all_ops()), batch(), 5);
  auto b = train(prepare(mlp("z = Gemm <transB = 1> (h, w2, b2)\n p = Softmax (z)", "float[N,3] p"),
                         r, all_ops()),
                 batch(), 5);
  EXPECT_EQ(a, b);
}

TEST(Prepare, EveryLossTrains) {
  for (const char* kind : {"mse", "l1", "huber", "bce_logits", "hinge"}) {
    SCOPED_TRACE(kind);
    Recipe r;
    r.losses.emplace_back().kind = kind;
    r.optimizer.kind = "adam";
    r.optimizer.lr = 0.01;
    Feeds f = batch();
    f["label"] = random_tensor({16, 3}, 0, 1, 5);
    auto l = train(prepare(mlp(), r, all_ops()), f, 30);
    EXPECT_LT(l.back(), l.front());
  }
}

TEST(Prepare, ResetDrawsNewValues) {
  Recipe r;
  r.reset = true;
  r.seed = 5;
  Model a = prepare(mlp(), r, all_ops()), b = prepare(mlp(), r, all_ops());
  expect_valid(a);
  std::vector<double> w = a.initializer("w1")->to_doubles();
  EXPECT_EQ(w, b.initializer("w1")->to_doubles());
  EXPECT_NE(w, mlp().initializer("w1")->to_doubles());
  for (double v : w) EXPECT_LE(std::abs(v), 0.5);  // 1 / sqrt(4 inputs)
  Training t(std::make_shared<Model>(a), 0);
  t.step(batch());
  t.initialize();
  std::vector<double> again = t.state().get("w1").to_doubles();
  EXPECT_NE(again, mlp().initializer("w1")->to_doubles());
  EXPECT_EQ(t.state().get("T").to_doubles()[0], 0);
  EXPECT_LT(t.step(batch()).loss, 3);
}

TEST(Prepare, AccumulationLeavesEverythingAloneBetweenUpdates) {
  Recipe r;
  r.accumulate = 3;
  Model m = prepare(mlp(), r, all_ops());
  expect_valid(m);
  Training t(std::make_shared<Model>(m), 0);
  std::vector<double> w = t.state().get("w1").to_doubles();
  for (int k = 1; k <= 6; ++k) {
    t.step(batch(uint64_t(k)));
    std::vector<double> now = t.state().get("w1").to_doubles();
    EXPECT_EQ(now == w, k % 3 != 0) << "step " << k;
    EXPECT_EQ(t.state().get("T").to_doubles()[0], k / 3);
    w = now;
  }
}

TEST(Recipe, UnknownKeysAreErrorsWithASuggestion) {
  Recipe r = recipe_from_json(
      R"({"losses": [{"kind": "mse", "weight": 2}], "optimizer": {"kind": "sgd", "lr": 0.5, "momentum": 0.9},
    "schedule": {"kind": "step", "step_size": 3}, "freeze": "a.*", "clip_norm": 1, "accumulate": 4})");
  EXPECT_EQ(r.losses[0].kind, "mse");
  EXPECT_EQ(*r.optimizer.lr, 0.5);
  EXPECT_EQ(r.schedule.numbers.at("step_size"), 3);
  EXPECT_EQ(r.freeze, std::vector<std::string>{"a.*"});
  try {
    recipe_from_json(R"({"optimiser": "sgd"})");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "OT1230");
    EXPECT_NE(e.hint().find("'optimizer'"), std::string::npos);
  }
  EXPECT_THROW(recipe_from_json(R"({"optimizer": {"kind": "adma"}})"), Error);
  EXPECT_THROW(recipe_from_json(R"({"clip_norm": "1"})"), Error);
  EXPECT_THROW(recipe_from_json("{"), Error);
}

}  // namespace
}  // namespace onnxtrain
