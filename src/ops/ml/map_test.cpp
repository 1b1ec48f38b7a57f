// Values of ZipMap, DictVectorizer and CastMap.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"
#include "tests/support/text_case.hpp"

namespace onnxtrain::testing {

namespace {

std::vector<NamedValue> run_maps(const char* graph, const Feeds& feeds) {
  return Session(text_model(graph)).run(feeds);
}

Value int_map(std::map<int64_t, Value> items) {
  auto m = std::make_shared<MapValue>();
  m->items = std::move(items);
  return m;
}

}  // namespace

TEST(Maps, Zip) {
  Value out = run_maps(R"(
    g (float[N,2] x) => (seq(map(string, float)) z) {
      z = ai.onnx.ml.ZipMap<classlabels_strings = ["a", "b"]>(x)
    })",
                       {{"x", floats({1, 2, 3, 4}, {2, 2})}})[0]
                  .second;
  const Sequence& rows = *std::get<std::shared_ptr<Sequence>>(out);
  ASSERT_EQ(rows.items.size(), 2u);
  const auto& second = std::get<std::map<std::string, Value>>(
      std::get<std::shared_ptr<MapValue>>(rows.items[1])->items);
  EXPECT_EQ(std::get<Tensor>(second.at("a")).to_doubles(), std::vector<double>{3});
  EXPECT_EQ(std::get<Tensor>(second.at("b")).to_doubles(), std::vector<double>{4});
}

TEST(Maps, ToTensors) {
  Feeds f = {{"m", int_map({{2, Tensor::scalar<float>(5)}, {7, Tensor::scalar<float>(6)}})}};
  Value dict = run_maps(R"(
    g (map(int64, float) m) => (float[K] y) {
      y = ai.onnx.ml.DictVectorizer<int64_vocabulary = [7, 1, 2]>(m)
    })",
                        f)[0]
                   .second;
  EXPECT_EQ(std::get<Tensor>(dict).to_doubles(), (std::vector<double>{6, 0, 5}));
  Value sparse = run_maps(R"(
    g (map(int64, float) m) => (int64[1,K] y) {
      y = ai.onnx.ml.CastMap<cast_to = "TO_INT64", map_form = "SPARSE", max_map = 9>(m)
    })",
                          f)[0]
                     .second;
  EXPECT_EQ(std::get<Tensor>(sparse).to_doubles(),
            (std::vector<double>{0, 0, 5, 0, 0, 0, 0, 6, 0}));
}

}  // namespace onnxtrain::testing
