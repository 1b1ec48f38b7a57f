// Settings with which nothing is learnt; what weight decay does to a weight without a gradient.
#include "convert/step/odd_settings.hpp"

#include <gtest/gtest.h>

#include "convert/step/names.hpp"
#include "convert/step/optimizers.hpp"
#include "engine/training.hpp"
#include "onnx/onnx.hpp"

namespace onnxtrain {
namespace {

Model line(const std::string& ratio = "0.1") {
  return parse_model(cat(R"(<ir_version: 8, opset_import: ["" : 17]>
line (float[N,1] x) => (float[N,1] y) <float[1,1] w = {1000}, float ratio = {)",
                         ratio, R"(}>
{ d = Dropout (x, ratio)
  y = MatMul (d, w) })"),
                     all_ops());
}

std::vector<OddSetting> odd(const std::string& json) {
  return odd_settings(recipe_from_json(json), line());
}

TEST(OddSettings, UsualOnesAreNotSaid) {
  for (const Optimizer* o : all_ops().optimizers()) {
    SCOPED_TRACE(o->kind);
    Recipe r;
    r.optimizer.kind = o->kind;
    EXPECT_TRUE(odd_settings(r, line()).empty());
  }
  for (const char* json :
       {R"({"loss": {"kind": "cross_entropy", "label_smoothing": 0.2}, "clip_norm": 0.01})",
        R"({"optimizer": {"kind": "sgd", "lr": 1, "momentum": 0.99, "weight_decay": 5e-4}})",
        R"({"optimizer": {"kind": "adamw", "lr": 0.01, "weight_decay": 10}})",
        R"({"optimizer": {"kind": "adam", "lr": 0.1, "betas": [0, 0.9], "eps": 1.0}})",
        R"({"optimizer": {"kind": "adam", "lr": 1, "weight_decay": 1}})",
        R"({"optimizer": {"kind": "rmsprop", "eps": 1.0, "momentum": 0.9}})"})
    EXPECT_TRUE(odd(json).empty()) << json << ": " << odd(json)[0].text;
}

TEST(OddSettings, AreSaid) {
  for (const char* json :
       {R"({"loss": {"kind": "cross_entropy", "label_smoothing": 0.6}})",
        R"({"loss": {"kind": "mse", "weight": 0}})", R"({"loss": {"kind": "mse", "weight": -1}})",
        R"({"optimizer": {"kind": "adam", "betas": [0.999, 0.9]}})",
        R"({"optimizer": {"kind": "sgd", "momentum": 0.9999}})",
        R"({"optimizer": {"kind": "sgd", "momentum": 0.9, "dampening": 1}})",
        R"({"optimizer": {"kind": "rmsprop", "alpha": 1}})",
        R"({"optimizer": {"kind": "adadelta", "rho": 1}})",
        R"({"optimizer": {"kind": "adam", "eps": 100}})",
        R"({"optimizer": {"kind": "adamw", "lr": 1, "weight_decay": 0.5}})",
        R"({"optimizer": {"kind": "adamw", "overrides": [{"glob": "w", "weight_decay": 1000}]}})",
        R"({"optimizer": {"kind": "onnx_momentum", "attributes": {"alpha": 1}}})",
        R"({"clip_norm": 1e-6})", R"({"clip_value": 1e-6})"})
    EXPECT_EQ(odd(json).size(), 1u) << json;
  EXPECT_EQ(odd_settings({}, line("0.95")).size(), 1u);
  Recipe as_is;
  as_is.mode = "as_is";
  EXPECT_TRUE(odd_settings(as_is, line("0.95")).empty());
}

TEST(OddSettings, Schedules) {
  auto said = [](const char* json, int64_t updates) {
    return !odd_schedule(recipe_from_json(json), updates).text.empty();
  };
  EXPECT_TRUE(said(R"({"schedule": {"kind": "exponential"}})", 1000));
  EXPECT_FALSE(said(R"({"schedule": {"kind": "exponential", "gamma": 0.995}})", 1000));
  EXPECT_TRUE(said(R"({"schedule": {"kind": "step", "step_size": 1000}})", 1000));
  EXPECT_FALSE(said(R"({"schedule": {"kind": "step", "step_size": 300}})", 1000));
  EXPECT_TRUE(said(R"({"schedule": {"kind": "multistep", "milestones": [2000]}})", 1000));
  EXPECT_TRUE(said(R"({"schedule": {"kind": "constant", "warmup_steps": 1000}})", 1000));
  EXPECT_FALSE(said(R"({"schedule": {"kind": "constant", "warmup_steps": 100}})", 1000));
  EXPECT_TRUE(said(R"({"schedule": {"kind": "linear", "total_steps": 500}})", 1000));
  for (const char* kind : {"cosine", "linear", "onecycle", "polynomial"})
    for (int64_t updates : {1, 4, 1000, 100000}) {
      Recipe r;
      r.schedule.kind = kind;
      r.schedule.numbers["total_steps"] = double(updates);
      EXPECT_EQ(odd_schedule(r, updates).text, "") << kind << updates;
    }
}

// What `shrink` says of every optimizer is what its update does.
TEST(OddSettings, DecayOfAWeightWithoutGradient) {
  for (const Optimizer* o : all_ops().optimizers())
    for (const char* style : {"torch", "keras"}) {
      // lamb moves by a share of the weight whatever the gradient is; rprop decays nothing
      const std::string kind = o->kind;
      if ((std::string(style) == "keras" && !o->has_keras_style) || kind == "lamb" ||
          kind == "rprop")
        continue;
      SCOPED_TRACE(cat(kind, " ", style));
      Recipe r;
      r.optimizer.kind = kind;
      r.optimizer.style = style;
      r.optimizer.lr = 0.01;
      r.optimizer.weight_decay = 0.5;
      if (o->setting("decoupled_weight_decay")) r.optimizer.settings["decoupled_weight_decay"] = 1;
      Training t(std::make_shared<Model>(prepare(line(), r, all_ops())), 0);
      const Tensor zero = Tensor(DType::kFloat, {1, 1});
      Feeds f = {{"x", zero.clone()}, {"label", zero.clone()}};
      for (auto& [name, v] : f) *std::get<Tensor>(v).as<float>() = 0;
      t.step(f);
      const double left = t.state().get("w").to_doubles()[0] / 1000;
      EXPECT_NEAR(left, 1 - 0.01 * o->node(settings_of(r.optimizer)).shrink, 1e-4);
    }
}

}  // namespace
}  // namespace onnxtrain
