// Every optimizer's record: words, settings and the node that it makes fit together.
#include "convert/step/optimizers.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include <nlohmann/json.hpp>

#include "convert/step/names.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain {
namespace {

// The node must be one of an operator in the table, with the scalars and states of its form.
void expect_sound(const Optimizer& o, const OptimizerSpec& spec) {
  const OptimizerNode n = o.node(settings_of(spec));
  const Op* op = all_ops().find(n.domain, n.op, 1);
  ASSERT_NE(op, nullptr) << n.op;
  ASSERT_TRUE(op->update) << n.op;
  EXPECT_EQ(op->update->scalars, int(std::strlen(n.scalars))) << n.op;
  EXPECT_LE(op->update->states, int(n.state.size())) << n.op;  // scalars behind them
  for (const char* c = n.scalars; *c; ++c) EXPECT_NE(std::strchr("RTN", *c), nullptr);
  if (n.domain != kOwnDomain) return;
  ASSERT_NE(op->function, nullptr) << n.op;
  for (const auto& [key, value] : n.attrs) {
    EXPECT_TRUE(std::holds_alternative<Tensor>(value)) << key;
    EXPECT_NE(std::string(op->function).find("@" + key), std::string::npos) << n.op << " " << key;
  }
}

TEST(OptimizerRecords, NodesFitTheirOperators) {
  ASSERT_GE(all_ops().optimizers().size(), 12u);
  for (const Optimizer* o : all_ops().optimizers()) {
    SCOPED_TRACE(o->kind);
    for (const char* style : {"torch", "keras"}) {
      if (std::string(style) == "keras" && !o->has_keras_style) continue;
      OptimizerSpec spec;
      spec.kind = o->kind;
      spec.style = style;
      expect_sound(*o, spec);
      for (const OptimizerSetting& s : o->settings) {  // every variant that a setting chooses
        OptimizerSpec other = spec;
        other.settings[s.name] = s.range == SettingRange::kFlag ? 1 : 0.5;
        expect_sound(*o, other);
      }
    }
  }
}

TEST(OptimizerRecords, SettingsAreInRange) {
  std::set<std::string> classes;
  for (const Optimizer* o : all_ops().optimizers()) {
    SCOPED_TRACE(o->kind);
    ASSERT_NE(o->setting("lr"), nullptr);
    for (const OptimizerSetting& s : o->settings) {
      EXPECT_TRUE(in_range(s.range, s.value)) << s.name;
      EXPECT_TRUE(!s.keras || in_range(s.range, *s.keras)) << s.name;
      EXPECT_TRUE(!s.keras || o->has_keras_style) << s.name;
    }
    EXPECT_NE(std::string(o->help), "");
    EXPECT_TRUE(!*o->class_name || classes.insert(o->class_name).second);
    EXPECT_TRUE(!*o->base_class || std::string(o->base_class) != o->class_name);
  }
}

TEST(OptimizerRecords, DefaultsAndWhatIsGiven) {
  OptimizerSpec o;
  o.kind = "rmsprop";
  EXPECT_EQ(settings_of(o)["alpha"], 0.99);
  EXPECT_EQ(default_lr(o), 1e-2);
  o.style = "keras";
  EXPECT_EQ(settings_of(o)["alpha"], 0.9);
  EXPECT_EQ(default_lr(o), 1e-3);
  o.settings["alpha"] = 0.5;
  o.weight_decay = 0.1;
  EXPECT_EQ(settings_of(o)["alpha"], 0.5);
  EXPECT_EQ(settings_of(o)["weight_decay"], 0.1);
  EXPECT_EQ(settings_of(o, 0.0)["weight_decay"], 0);
  o = {};
  o.kind = "onnx_adam";
  o.weight_decay = 0.25;
  EXPECT_EQ(first_step(o), 1);
  EXPECT_EQ(
      std::get<float>(
          all_ops().optimizer("onnx_adam")->node(settings_of(o)).attrs.at("norm_coefficient")),
      0.25f);
  o.attributes["norm_coefficient"] = 0;  // given: it counts, also when it is 0
  EXPECT_EQ(
      std::get<float>(
          all_ops().optimizer("onnx_adam")->node(settings_of(o)).attrs.at("norm_coefficient")),
      0.0f);
  o.attributes["gamma"] = 1;
  EXPECT_THROW(settings_of(o), Error);
}

TEST(OptimizerRecords, AsJson) {
  const auto list = nlohmann::json::parse(optimizer_records());
  ASSERT_EQ(list.size(), all_ops().optimizers().size());
  for (const auto& o : list) {
    if (o["kind"] != "adamw") continue;
    EXPECT_EQ(o["class_name"], "AdamW");
    EXPECT_EQ(o["base_class"], "Adam");
    EXPECT_EQ(o["has_keras_style"], true);
    for (const auto& s : o["settings"]) {
      EXPECT_TRUE(s["name"] != "weight_decay" || s["keras"] == 0.004);
      EXPECT_TRUE(s["name"] != "amsgrad" || s["value"] == false);
    }
  }
}

TEST(OptimizerRecords, UnknownWordsAndWrongValues) {
  auto code = [](const char* json) {
    try {
      recipe_from_json(json);
    } catch (const Error& e) {
      return e.code();
    }
    return std::string();
  };
  EXPECT_EQ(code(R"({"optimizer": {"kind": "adma"}})"), "OT1232");
  EXPECT_EQ(code(R"({"optimizer": {"kind": "adam", "beta3": 0.5}})"), "OT1230");
  EXPECT_EQ(code(R"({"optimizer": {"kind": "adam", "beta2": 1}})"), "OT1233");
  EXPECT_EQ(code(R"({"optimizer": {"kind": "adam", "amsgrad": 1}})"), "OT1231");
  EXPECT_EQ(code(R"({"optimizer": {"kind": "sgd", "nesterov": true}})"), "OT1234");
  EXPECT_EQ(code(R"({"optimizer": {"kind": "sgd", "nesterov": true, "momentum": 0.9}})"), "");
  EXPECT_EQ(code(R"({"optimizer": {"kind": "rmsprop", "alpha": 1}})"), "");
}

// A setting of another optimizer would have no effect.
TEST(OptimizerRecords, SettingsOfAnotherOptimizerAreRefused) {
  auto message = [](const std::string& optimizer, const char* more = "") {
    try {
      recipe_from_json(cat(R"({"optimizer": {)", optimizer, "}", more, "}"));
    } catch (const Error& e) {
      return cat(e.code(), " ", e.what());
    }
    return std::string();
  };
  EXPECT_NE(message(R"("kind": "adam", "momentum": 0.9)").find("adam has no setting 'momentum'"),
            std::string::npos);
  EXPECT_NE(message(R"("kind": "sgd", "betas": [0.9, 0.99])").find("sgd has no setting 'beta1'"),
            std::string::npos);
  EXPECT_NE(message(R"("kind": "lion", "eps": 1e-8)").find("OT1230"), std::string::npos);
  EXPECT_NE(message(R"("kind": "rprop", "weight_decay": 0.1)").find("OT1230"), std::string::npos);
  EXPECT_NE(message(R"("kind": "adam", "attributes": {"alpha": 0.9})").find("'attributes'"),
            std::string::npos);
  EXPECT_NE(message(R"("kind": "rprop")", R"(, "schedule": "cosine")").find("no effect"),
            std::string::npos);
  EXPECT_EQ(message(R"("kind": "rprop", "etas": [0.4, 1.3], "step_sizes": [1e-5, 1])"), "");
  EXPECT_NE(message(R"("kind": "rprop", "etas": [1.4, 1.3])").find("OT1234"), std::string::npos);
  EXPECT_EQ(message(R"("kind": "nadam", "momentum_decay": 0.01, "decoupled_weight_decay": true)"),
            "");
}

}  // namespace
}  // namespace onnxtrain
