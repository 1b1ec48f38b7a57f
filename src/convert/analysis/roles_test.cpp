// What is a weight and what a constant, and what is said about weights that do not train.
#include "convert/analysis/roles.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "convert/testing.hpp"

namespace onnxtrain {
namespace {

using testing::weights;

Model parse(const std::string& inputs, const std::string& outputs, const std::string& initializers,
            const std::string& body, const char* producer = "") {
  return parse_model(
      cat("<ir_version: 9, producer_name: \"", producer, "\", opset_import: [\"\" : 17]>\ng (",
          inputs, ") => (", outputs, ")\n<", initializers, ">\n{\n", body, "\n}\n"),
      all_ops());
}

// name -> role, and the reason.
struct Roles {
  nlohmann::json list;
  explicit Roles(const Model& m, const Recipe& r = {})
      : list(nlohmann::json::parse(weights_json(m, r))["weights"]) {}
  std::string of(const std::string& name) const {
    for (const auto& w : list)
      if (w["name"] == name) return w["role"].get<std::string>();
    return "";
  }
  std::string because(const std::string& name) const {
    for (const auto& w : list)
      if (w["name"] == name) return w.value("because", "");
    return "";
  }
};

TEST(Roles, TheOneOfOneMinusPIsNoWeight) {
  Model m = parse("float[N,4] x", "float[N,2] p",
                  cat(weights("w", {4, 1}, 1), ", float[1] b = {0.5}, float unity = {1}"),
                  "a = MatMul (x, w)\n s = Add (a, b)\n q = Sigmoid (s)\n r = Sub (unity, q)\n "
                  "p = Concat <axis = 1> (r, q)");
  Roles r(m);
  EXPECT_EQ(r.of("w"), "trained");
  EXPECT_EQ(r.of("b"), "trained") << r.because("b");
  EXPECT_EQ(r.of("unity"), "constant");
}

// Their records say which operands are integers that stand for real numbers; a scale is none.
TEST(Roles, OperandsOfIntegerLayersAreIntegers) {
  Roles r(parse("float[N,1,4,4] x", "float[N,1,3,3] y",
                "int8[1,1,2,2] w = {1,2,3,4}, uint8[1,1,1,1] v = {3}, float sx = {0.5}, "
                "float sw = {0.1}, float sy = {0.2}, uint8 zx = {3}, int8 zw = {0}, uint8 zy = {0}",
                "q = QuantizeLinear (x, sx, zx)\n"
                "c = QLinearConv (q, sx, zx, w, sw, zw, sy, zy)\n"
                "d = DequantizeLinear (c, sy, zy)\n"
                "i = ConvInteger (c, v)\n f = Cast <to = 1> (i)\n"
                "y = Add (d, f)"));
  EXPECT_EQ(r.of("w"), "integers") << r.because("w");
  for (const char* name : {"sx", "sw", "sy"}) EXPECT_NE(r.of(name), "integers") << name;
  EXPECT_NE(r.of("zy"), "integers");
}

TEST(Roles, ScalingOfTheInputIsNoWeight) {
  const std::string layers = "h = MatMul (s, w)\n y = Add (h, b)";
  const std::string both = cat(weights("w", {4, 3}, 1), ", ", weights("b", {3}, 2), ", ",
                               weights("low", {4}, 3), ", ", weights("range", {4}, 4));
  Roles sub(parse("float[N,4] x", "float[N,3] y", both,
                  "c = Sub (x, low)\n s = Div (c, range)\n" + layers));
  for (const char* name : {"low", "range"}) EXPECT_EQ(sub.of(name), "constant") << name;
  for (const char* name : {"w", "b"}) EXPECT_EQ(sub.of(name), "trained") << name;
  Roles mul(parse("float[N,4] x", "float[N,3] y", both,
                  "c = Mul (x, range)\n s = Add (c, low)\n" + layers));
  for (const char* name : {"low", "range"}) EXPECT_EQ(mul.of(name), "constant") << name;
  // torch.onnx names parameters after the module: a product with the input may be a layer there
  Roles torch(parse("float[N,4] x", "float[N,3] y", both,
                    "c = Mul (x, range)\n s = Add (c, low)\n" + layers, "pytorch"));
  for (const char* name : {"low", "range"}) EXPECT_EQ(torch.of(name), "trained") << name;
}

TEST(Roles, ALineHasTwoWeights) {
  Roles r(parse("float[N,1] x", "float[N,1] y", "float[1] w = {2}, float[1] b = {1}",
                "a = Mul (x, w)\n y = Add (a, b)"));
  EXPECT_EQ(r.of("w"), "trained");
  EXPECT_EQ(r.of("b"), "trained");
}

TEST(Roles, CentersThatWidenTheDataAreWeights) {
  Roles r(parse("float[N,1,4] x", "float[N,3] y",
                cat(weights("centers", {3, 4}, 1), ", int64[1] axis = {2}"),
                "d = Sub (x, centers)\n e = Mul (d, d)\n y = ReduceSum <keepdims = 0> (e, axis)"));
  EXPECT_EQ(r.of("centers"), "trained");
}

TEST(Roles, ExponentsAndEpsilonsOfAnyRank) {
  Roles r(
      parse("float[N,4] x", "float[N,3] y",
            cat(weights("w", {4, 3}, 1), ", float[1,1] two = {2}, float[1] small = {0.00001}, ",
                weights("gamma", {3}, 2)),
            "h = MatMul (x, w)\n s = Pow (h, two)\n t = Add (s, small)\n q = Sqrt (t)\n n = Div "
            "(h, q)\n y = Mul (n, gamma)"));
  EXPECT_EQ(r.of("two"), "constant");
  EXPECT_EQ(r.of("small"), "constant");
  EXPECT_EQ(r.of("gamma"), "trained");
}

TEST(Roles, LearnedScalarsOfTorchAreWeights) {
  Roles r(
      parse("float[N,4] x", "float[N,3] y",
            cat(weights("fc_weight", {4, 3}, 1),
                ", float temperature = {2}, float[1] gate = {0}, float[1] act_weight = {0.25}"),
            "h = MatMul (x, fc_weight)\n p = PRelu (h, act_weight)\n g = Mul (p, gate)\n a = Add "
            "(g, p)\n y = Div (a, temperature)",
            "pytorch"));
  for (const char* name : {"temperature", "gate", "act_weight"})
    EXPECT_EQ(r.of(name), "trained") << name << ": " << r.because(name);
}

TEST(Roles, FittedPreprocessing) {
  const std::string numbers =
      cat(weights("mean", {4}, 1), ", ", weights("transform_matrix", {4, 2}, 2), ", ",
          weights("coefficient", {2, 3}, 3), ", ", weights("intercepts", {1, 3}, 4));
  const std::string body =
      "c = Sub (x, mean)\n z = MatMul (c, transform_matrix)\n h = MatMul (z, coefficient)\n y = "
      "Add (h, intercepts)";
  Roles r(parse("float[N,4] x", "float[N,3] y", numbers, body, "skl2onnx"));
  EXPECT_EQ(r.of("mean"), "constant");
  EXPECT_EQ(r.of("transform_matrix"), "constant");
  EXPECT_EQ(r.of("coefficient"), "trained");
  EXPECT_EQ(r.of("intercepts"), "trained");
  Recipe only;
  only.only = {"transform_matrix"};
  EXPECT_EQ(
      trainable_parameters(parse("float[N,4] x", "float[N,3] y", numbers, body, "skl2onnx"), only),
      std::vector<std::string>{"transform_matrix"});
}

// ---- weights that do not train are said
Model behind_round() {
  return parse("float[N,4] x", "float[N,3] y",
               cat(weights("w1", {4, 4}, 1), ", ", weights("w2", {4, 3}, 2)),
               "h = MatMul (x, w1)\n r = Round (h)\n y = MatMul (r, w2)");
}

TEST(LeftOut, NamesTheNodeWhereTheGradientStops) {
  Decisions d;
  prepare(behind_round(), {}, all_ops(), &d);
  ASSERT_EQ(d.left_out.size(), 1u);
  EXPECT_EQ(d.left_out[0].names, std::vector<std::string>{"w1"});
  EXPECT_NE(d.left_out[0].text.find("Round"), std::string::npos) << d.left_out[0].text;
  EXPECT_NE(d.left_out[0].hint.find("--freeze w1"), std::string::npos) << d.left_out[0].hint;
  Recipe r;
  r.freeze = {"w1"};  // said by the user: nothing is left to say
  prepare(behind_round(), r, all_ops(), &(d = {}));
  EXPECT_TRUE(d.left_out.empty());
}

TEST(LeftOut, StrictIsAnError) {
  Recipe r;
  r.strict = true;
  try {
    prepare(behind_round(), r, all_ops());
    FAIL() << "a weight that does not train was accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "OT1285");
    EXPECT_NE(e.message().find("'w1'"), std::string::npos) << e.message();
  }
}

TEST(LeftOut, AWeightBehindAnOutputThatTheLossDoesNotRead) {
  Model m = parse("float[N,4] x", "float[N,3] y, float[N,2] aux",
                  cat(weights("w", {4, 3}, 1), ", ", weights("wa", {4, 2}, 2)),
                  "y = MatMul (x, w)\n aux = MatMul (x, wa)");
  Decisions d;
  prepare(m, {}, all_ops(), &d);
  ASSERT_EQ(d.left_out.size(), 1u);
  EXPECT_EQ(d.left_out[0].names, std::vector<std::string>{"wa"});
  EXPECT_NE(d.left_out[0].text.find("'aux'"), std::string::npos) << d.left_out[0].text;
}

TEST(LeftOut, OnlyThroughNodesWithoutDerivative) {
  Model m = parse("float[N,4] x", "float[N,4] y", weights("w", {4, 4}, 1),
                  "h = MatMul (x, w)\n y = Sign (h)");
  try {
    prepare(m, {}, all_ops());
    FAIL() << "nothing can train here";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "OT1203");
    EXPECT_NE(e.message().find("'w' does not train"), std::string::npos) << e.message();
    EXPECT_NE(e.message().find("stops at"), std::string::npos) << e.message();
    EXPECT_NE(e.message().find("Sign"), std::string::npos) << e.message();
  }
}

TEST(LeftOut, AModelWithoutWeightsIsNoMatterOfTheOperatorsInIt) {
  Model m = parse("float[N,4] x", "float[N,4] y", "",
                  "s = Shape (x)\n z = Reshape (x, s)\n y = Relu (z)");
  try {
    prepare(m, {}, all_ops());
    FAIL() << "nothing can train here";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "OT1203");
    EXPECT_NE(e.message().find("the model has no weights"), std::string::npos) << e.message();
    EXPECT_EQ(e.message().find("Shape"), std::string::npos) << e.message();
  }
}

}  // namespace
}  // namespace onnxtrain
