// A model behind preprocessing gives on raw columns what it gives on columns prepared by hand.
#include "convert/preprocess/preprocess.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "convert/prepare.hpp"
#include "engine/training.hpp"
#include "onnx/onnx.hpp"

namespace onnxtrain {
namespace {

using Kind = ColumnTransform::Kind;

Model identity(int64_t width) {
  return parse_model(cat("<ir_version: 8, opset_import: [\"\" : 17]> g (float[N,", width,
                         "] x) => (float[N,", width, "] y) { y = Identity (x) }"),
                     all_ops());
}

ColumnTransform number(const std::string& name, double fill, double offset, double scale) {
  ColumnTransform c;
  c.name = name;
  c.fill = fill;
  c.offset = offset;
  c.scale = scale;
  return c;
}

ColumnTransform category(const std::string& name, std::vector<std::string> list, int64_t width) {
  ColumnTransform c;
  c.kind = Kind::kCategory;
  c.name = name;
  c.categories = std::move(list);
  c.embedding = width;
  return c;
}

Tensor column(const std::vector<float>& v) {
  return Tensor::vector(v).reshaped({int64_t(v.size()), 1});
}

Tensor texts(const std::vector<std::string>& v) {
  Tensor t(DType::kString, {int64_t(v.size()), 1});
  for (size_t k = 0; k < v.size(); ++k) t.as<std::string>()[k] = v[k];
  return t;
}

TEST(Preprocess, FillsScalesAndEncodes) {
  const std::vector<ColumnTransform> plan{number("age", 30, 30, 0.1),
                                          category("city", {"", "Bern", "Rome"}, 0),
                                          number("price", 5, 1, 2)};
  ASSERT_EQ(total_width(plan), 5);
  auto m = std::make_shared<const Model>(with_preprocessing(identity(5), "x", plan, 0, all_ops()));
  const float nan = std::nanf("");
  const auto out = Session(m).run({{"age", Value(column({40, nan, 30}))},
                                   {"price", Value(column({1, 2, nan}))},
                                   {"city", Value(texts({"Rome", "", "Oslo"}))}});
  EXPECT_EQ(std::get<Tensor>(out[0].second).to_doubles(),
            (std::vector<double>{1, 0, 0, 0, 1, 0, 2, 1, 0, 0, 0, 8, 0, 0, 0}));
}

TEST(Preprocess, OneColumnAlone) {
  auto m = std::make_shared<const Model>(
      with_preprocessing(identity(1), "x", {number("x", 0, 1, 1)}, 0, all_ops()));
  const auto out = Session(m).run({{"x", Value(column({4}))}});
  EXPECT_EQ(std::get<Tensor>(out[0].second).to_doubles(), (std::vector<double>{3}));
}

TEST(Preprocess, OnlyTheEmbeddingTrains) {
  Model net = parse_model(R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[N,4] x) => (float[N,2] logits) <float[4,2] w = {1,2,3,4,5,6,7,8}>
{ logits = MatMul (x, w) })",
                          all_ops());
  const Model m = with_preprocessing(
      net, "x", {number("age", 1, 2, 3), category("city", {"Bern", "Rome"}, 3)}, 0, all_ops());
  EXPECT_EQ(trainable_parameters(m, Recipe()), (std::vector<std::string>{"w", "city.embedding"}));
  Training t(std::make_shared<const Model>(prepare(m, Recipe(), all_ops())), 1);
  Feeds feeds{{"age", Value(column({1, 2}))},
              {"city", Value(texts({"Rome", "Oslo"}))},
              {"label", Value(Tensor::vector(std::vector<int64_t>{0, 1}))}};
  const double first = t.step(feeds).loss;
  for (int k = 0; k < 50; ++k) (void)t.step(feeds);
  EXPECT_LT(t.step(feeds).loss, first);
}

TEST(Preprocess, NamesInsideTheModelGiveWay) {
  Model net = parse_model(R"(<ir_version: 8, opset_import: ["" : 17]>
g (float[N,1] x) => (float[N,1] y) { age = Neg (x)  y = Identity (age) })",
                          all_ops());
  auto m = std::make_shared<const Model>(
      with_preprocessing(net, "x", {number("age", 0, 0, 1)}, 0, all_ops()));
  const auto out = Session(m).run({{"age", Value(column({4}))}});
  EXPECT_EQ(std::get<Tensor>(out[0].second).to_doubles(), (std::vector<double>{-4}));
  EXPECT_THROW((void)with_preprocessing(net, "x", {number("y", 0, 0, 1)}, 0, all_ops()), Error);
}

TEST(Preprocess, OtherWidthIsRefusedWithEachShare) {
  try {
    (void)with_preprocessing(
        identity(4), "x", {number("age", 0, 0, 1), category("city", {"a", "b"}, 0)}, 0, all_ops());
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "OT2172");
    EXPECT_NE(e.message().find("3 numbers per row"), std::string::npos) << e.message();
    EXPECT_NE(e.message().find("city 2 (one-hot)"), std::string::npos) << e.message();
  }
}

}  // namespace
}  // namespace onnxtrain
