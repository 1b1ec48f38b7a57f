// NaN and infinities in the initializers of a file.
#include "convert/analysis/bad_values.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "convert/prepare.hpp"
#include "convert/testing.hpp"

namespace onnxtrain {
namespace {

using testing::weights;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// y = relu(x w + b) + shift, and z = x v, where one value of `spoilt` is `value`.
Model spoilt(const std::string& name, float value) {
  Model m = parse_model(
      cat("<ir_version: 9, opset_import: [\"\" : 17]>\ng (float[N,4] x) => (float[N,3] y, "
          "float[N,2] z)\n<",
          weights("w", {4, 3}, 1), ", ", weights("b", {3}, 2), ", ", weights("v", {4, 2}, 3), ", ",
          weights("mask", {1, 3}, 4),
          ", float fill = {0.5}>\n{\n a = MatMul (x, w)\n s = Add (a, "
          "b)\n n = IsNaN (s)\n f = Where (n, fill, s)\n c = Less (f, mask)\n d = Cast <to = 1> "
          "(c)\n y = Add (f, d)\n z = MatMul (x, v)\n}\n"),
      all_ops());
  Tensor t = m.initializer(name)->clone();
  t.as<float>()[t.size() - 1] = value;
  m.set_initializer(name, t);
  return m;
}

Recipe on_y(bool reset = false) {
  Recipe r;
  LossTerm t;
  t.kind = "mse";
  t.output = "y";
  r.losses = {t};
  r.reset = reset;
  return r;
}

std::string refusal(const Model& m, const Recipe& r) {
  try {
    prepare(m, r, all_ops());
  } catch (const Error& e) {
    return cat(e.code(), " ", e.message());
  }
  return "";
}

std::vector<std::string> said(const Model& m) {
  Decisions d;
  prepare(m, on_y(), all_ops(), &d);
  std::vector<std::string> texts;
  for (const LeftOut& l : d.left_out)
    if (l.text.find("NaN") != std::string::npos) texts.push_back(l.text);
  return texts;
}

TEST(BadValues, AWeightOrBiasIsRefusedByName) {
  for (const char* name : {"w", "b"})
    for (float value : {kNan, kInf, -kInf}) {
      const std::string text = refusal(spoilt(name, value), on_y());
      EXPECT_TRUE(text.starts_with(cat("OT1291 weight '", name, "' of the file holds "))) << text;
      EXPECT_EQ(refusal(spoilt(name, value), on_y(true)), "");  // new values
    }
  Recipe frozen = on_y();
  frozen.freeze = {"b"};
  EXPECT_NE(refusal(spoilt("b", kNan), frozen), "");
}

TEST(BadValues, WhatTheLossDoesNotReadIsSaid) {
  const Model m = spoilt("v", kNan);
  EXPECT_EQ(refusal(m, on_y()), "");
  ASSERT_EQ(said(m).size(), 1u);
  EXPECT_NE(said(m)[0].find("'v'"), std::string::npos);
}

TEST(BadValues, ConstantsWithNanAreSaidAndFillingsAndMasksLeftAlone) {
  ASSERT_EQ(said(spoilt("mask", kNan)).size(), 1u);
  EXPECT_TRUE(said(spoilt("mask", -kInf)).empty());
  EXPECT_TRUE(said(spoilt("fill", kNan)).empty());
}

TEST(BadValues, TheStateOfATrainingFile) {
  Model m = prepare(spoilt("w", 1), on_y(), all_ops());
  check_state_values(m);
  Tensor t = m.initializer("b")->clone();
  t.as<float>()[0] = kNan;
  m.set_initializer("b", t);
  EXPECT_THROW(check_state_values(m), Error);
}

}  // namespace
}  // namespace onnxtrain
