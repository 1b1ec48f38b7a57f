#include "data/adapt.hpp"

#include <cmath>

#include "data/test_files.hpp"

namespace onnxtrain {
namespace {

using namespace test;
using AdaptTest = DataTest;
using Doubles = std::vector<double>;
using Ints = std::vector<int64_t>;

template <class T>
Dataset one(const std::vector<T>& v, const Shape& shape, const std::string& name = "x") {
  return Dataset::from_tensors({{name, Tensor::vector<T>(v).reshaped(shape)}});
}

Tensor all(const ColumnPtr& c) {
  Dataset d;
  d.add("c", c);
  return d.gather_all("c");
}

TEST_F(AdaptTest, ImagesBecomeFloats) {
  const Dataset d = one<uint8_t>({0, 51, 102, 255}, {1, 2, 2});
  const Adapted a = adapt_input(d, "x", {"image", DType::kFloat, {-1, 1, 2, 2}});
  EXPECT_EQ(a.note, "uint8 [2,2] -> float32 [1,2,2] / 255");
  EXPECT_EQ(a.column->row_shape(), (Shape{1, 2, 2}));
  const Tensor t = all(a.column);
  EXPECT_EQ(t.as<float>()[1], 51 / 255.0f);
  EXPECT_EQ(t.as<float>()[3], 1.0f);
  AdaptOptions o;
  o.scale = "none";
  EXPECT_EQ(all(adapt_input(d, "x", {"i", DType::kFloat, {-1, 4}}, o).column).to_doubles(),
            (Doubles{0, 51, 102, 255}));
  o.scale = "0.5,0.25";
  const Adapted n = adapt_input(d, "x", {"i", DType::kFloat, {-1, 4}}, o);
  EXPECT_EQ(n.note, "uint8 [2,2] -> float32 [4] = (v / 255 - 0.5) / 0.25");
  EXPECT_EQ(all(n.column).to_doubles(), (Doubles{-2, double((51 / 255.0f - 0.5f) / 0.25f),
                                                 double((102 / 255.0f - 0.5f) / 0.25f), 2}));
  o.scale = "127.5,127.5";
  EXPECT_EQ(all(adapt_input(d, "x", {"i", DType::kDouble, {-1, 4}}, o).column).to_doubles()[3], 1);
  for (std::string bad : {"x", "1", "1,", "1,0", "nan,1", "1,2,3"}) {
    o.scale = bad;
    EXPECT_EQ(code([&] {
                adapt_input(d, "x", {"i", DType::kFloat, {-1, 4}}, o);
              }),
              "OT2132")
        << bad;
  }
  EXPECT_EQ(adapt_input(d, "x", {"i", DType::kUint8, {-1, 2, 2}}).column, d.column("x"));
  EXPECT_EQ(adapt_input(d, "x", {"i", DType::kFloat, {}}).column->row_shape(), (Shape{2, 2}));
}

TEST_F(AdaptTest, ChannelsLast) {
  const Dataset d = one<uint8_t>({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {1, 2, 2, 3});
  AdaptOptions o;
  o.scale = "none";
  const InputSpec input{"image", DType::kFloat, {-1, 3, 2, 2}};
  const Error e = error_of([&] { adapt_input(d, "x", input, o); });
  EXPECT_EQ(e.code(), "OT2110");
  EXPECT_EQ(e.message(),
            "data does not fit input 'image': file has [1,2,2,3], model wants [N,3,2,2]");
  EXPECT_EQ(e.hint(), "same sizes in another order; channels last?  --layout nhwc");
  o.layout = Layout::kNhwc;
  const Adapted a = adapt_input(d, "x", input, o);
  EXPECT_EQ(a.column->row_shape(), (Shape{3, 2, 2}));
  EXPECT_EQ(all(a.column).to_doubles(), (Doubles{1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12}));
}

TEST_F(AdaptTest, ChannelsWhereTheModelHadThem) {
  const Dataset last = one<float>({1, 2, 3, 4, 5, 6}, {1, 2, 1, 3}),
                first = one<float>({1, 4, 2, 5, 3, 6}, {1, 3, 2, 1});
  const InputSpec input{"i", DType::kFloat, {-1, 3, 2, 1}};
  AdaptOptions o;
  o.layout = Layout::kUsuallyNhwc;
  const Adapted moved = adapt_input(last, "x", input, o), as_is = adapt_input(first, "x", input, o);
  EXPECT_TRUE(moved.channels_last);
  EXPECT_FALSE(as_is.channels_last);
  EXPECT_EQ(all(moved.column).to_doubles(), all(as_is.column).to_doubles());
  // one channel: as many numbers in either order
  const Dataset grey = one<float>({1, 2, 3, 4}, {1, 1, 2, 2});
  const InputSpec one_channel{"i", DType::kFloat, {-1, 1, 2, 2}};
  EXPECT_EQ(all(adapt_input(grey, "x", one_channel, o).column).to_doubles(), (Doubles{1, 2, 3, 4}));
  o.layout = Layout::kNhwc;
  EXPECT_EQ(code([&] { adapt_input(grey, "x", one_channel, o); }), "OT2110");
}

TEST_F(AdaptTest, Shapes) {
  EXPECT_EQ(fit_row({28, 28}, {1, 28, 28}), (Shape{1, 28, 28}));
  EXPECT_EQ(fit_row({28, 28}, {-1, -1, -1}), (Shape{1, 28, 28}));
  EXPECT_EQ(fit_row({28, 28, 1}, {28, 28}), (Shape{28, 28}));
  EXPECT_EQ(fit_row({28, 28, 1}, {1, 28, 28}), (Shape{1, 28, 28}));
  EXPECT_EQ(fit_row({28, 28}, {784}), Shape{784});
  EXPECT_EQ(fit_row({784}, {1, 28, 28}), (Shape{1, 28, 28}));
  EXPECT_EQ(fit_row({}, {1}), Shape{1});
  EXPECT_EQ(fit_row({1}, {}), Shape{});
  EXPECT_EQ(fit_row({3, -0}, {3, 0}), (Shape{3, 0}));
  EXPECT_FALSE(fit_row({28, 27}, {28, 28}));
  EXPECT_FALSE(fit_row({2, 3}, {3, 2}));
  EXPECT_FALSE(fit_row({28, 28}, {783}));
  EXPECT_EQ(error_of([&] {
              adapt_input(one<float>({1, 2, 3, 4, 5, 6}, {1, 2, 3}), "x",
                          {"i", DType::kFloat, {-1, 3, 2}});
            }).hint(),
            "same sizes in another order; transpose the array before saving it");
}

TEST_F(AdaptTest, NanIsNamed) {
  std::vector<float> v(12, 1);
  v[7] = std::nanf("");
  const Dataset d = one<float>(v, {3, 2, 2});
  const Adapted a = adapt_input(d, "x", {"i", DType::kFloat, {-1, 2, 2}});
  const Error e = error_of([&] { all(a.column); });
  EXPECT_EQ(e.code(), "OT2120");
  EXPECT_NE(e.message().find("row 1 of 'x', element [1,1]"), std::string::npos) << e.message();
  EXPECT_EQ(code([&] {
              all(adapt_input(d, "x", {"i", DType::kDouble, {-1, 2, 2}}).column);
            }),
            "OT2120");
  // the row is counted in the file, also in a subset
  const auto rows = std::make_shared<const std::vector<int64_t>>(std::vector<int64_t>{2, 1});
  const Error s = error_of([&] { all(subset_column(a.column, rows)); });
  EXPECT_NE(s.message().find("row 1 "), std::string::npos);
}

TEST_F(AdaptTest, NumbersMustFit) {
  const auto to = [&](const Dataset& d, DType t) {
    return adapt_input(d, "x", {"i", t, {-1}}).column;
  };
  EXPECT_EQ(all(to(one<double>({1, -2}, {2}), DType::kInt64)).to_ints(), (Ints{1, -2}));
  EXPECT_EQ(all(to(one<int64_t>({1, 300}, {2}), DType::kFloat16)).to_doubles(), (Doubles{1, 300}));
  EXPECT_EQ(all(to(one<uint64_t>({1, 5}, {2}), DType::kBool)).to_doubles(), (Doubles{1, 1}));
  EXPECT_EQ(code([&] { all(to(one<double>({1, 2.5}, {2}), DType::kInt64)); }), "OT2111");
  EXPECT_EQ(code([&] { all(to(one<int64_t>({1, 300}, {2}), DType::kUint8)); }), "OT2111");
  EXPECT_EQ(code([&] { all(to(one<int64_t>({-1}, {1}), DType::kUint64)); }), "OT2111");
  EXPECT_EQ(code([&] { all(to(one<uint64_t>({UINT64_MAX}, {1}), DType::kInt64)); }), "OT2111");
  EXPECT_EQ(code([&] { all(to(one<double>({1e300}, {1}), DType::kFloat)); }), "OT2111");
  EXPECT_EQ(code([&] { all(to(one<double>({0x1p63}, {1}), DType::kInt64)); }), "OT2111");
  EXPECT_EQ(code([&] { to(one<float>({1}, {1}), DType::kString); }), "OT2112");
  EXPECT_EQ(all(to(one<int64_t>({INT64_MAX, INT64_MIN}, {2}), DType::kInt64)).to_ints(),
            (Ints{INT64_MAX, INT64_MIN}));
}

TEST_F(AdaptTest, Labels) {
  const LabelSpec spec{{"label", DType::kInt64, {-1}}, "logits", 10};
  LabelSummary s;
  Ints ones;
  for (int i = 0; i < 20; ++i) ones.push_back(1 + i % 10);
  const Dataset d = one<int64_t>(ones, {20, 1}, "y");
  const Error e = error_of([&] { adapt_labels(d, "y", spec, {}, s); });
  EXPECT_EQ(e.code(), "OT2104");
  EXPECT_EQ(e.message(),
            "label 10 at row 9 of 'y' is outside 0..9 (model output 'logits' has 10 classes)");
  EXPECT_EQ(e.hint(), "labels start at 1?  add --label-offset -1        (values seen: 1..10)");
  AdaptOptions o;
  o.label_offset = -1;
  const Adapted a = adapt_labels(d, "y", spec, o, s);
  EXPECT_EQ(a.column->row_shape(), Shape{});
  EXPECT_EQ(all(a.column).to_ints()[9], 9);
  EXPECT_EQ(s.text(), "10 classes (2 each)");
  EXPECT_EQ(s.counts, Ints(10, 2));
  EXPECT_EQ(labels_by_row(*a.column).size(), 20u);
  const Dataset few = one<uint8_t>({0, 11, 3}, {3}, "y");
  EXPECT_NE(
      error_of([&] { adapt_labels(few, "y", spec, {}, s); }).hint().find("values seen: 0..11"),
      std::string::npos);
  const Dataset half = one<float>({0, 0.5}, {2}, "y");
  EXPECT_EQ(code([&] { adapt_labels(half, "y", spec, {}, s); }), "OT2111");
  const Dataset hot = one<float>(std::vector<float>(20), {2, 10}, "y");
  EXPECT_NE(error_of([&] { adapt_labels(hot, "y", spec, {}, s); }).hint().find("argmax"),
            std::string::npos);
}

TEST_F(AdaptTest, IgnoredLabelsStay) {
  const Dataset d = one<int32_t>({1, -100, 3}, {3}, "y");
  LabelSummary s;
  AdaptOptions o;
  o.label_offset = -1;
  o.ignore_index = -100;
  const Adapted a = adapt_labels(d, "y", {{"l", DType::kInt64, {-1}}, "out", 3}, o, s);
  EXPECT_EQ(all(a.column).to_ints(), (Ints{0, -100, 2}));
  EXPECT_EQ(s.classes, 2);
  EXPECT_EQ(code([&] {
              adapt_labels(d, "y", {{"l", DType::kInt64, {-1}}, "out", 3}, {}, s);
            }),
            "OT2104");
}

TEST_F(AdaptTest, DataLine) {
  std::string pixels(6 * 784, '\1'), labels;
  for (int i = 0; i < 6; ++i) labels += char(i % 3);
  put("train-images-idx3-ubyte.gz", gzip_bytes(idx_bytes(8, {6, 28, 28}, pixels)));
  put("train-labels-idx1-ubyte.gz", gzip_bytes(idx_bytes(8, {6}, labels)));
  Dataset d = open_dataset(dir_);
  d.set_source("mnist/");
  LabelSummary s;
  const Adapted x = adapt_input(d, "x", {"image", DType::kFloat, {-1, 1, 28, 28}});
  adapt_labels(d, "y", {{"label", DType::kInt64, {-1}}, "logits", 10}, {}, s);
  EXPECT_EQ(
      data_line(d, x, &s),
      "mnist/  idx, gzip   6 images uint8 [28,28] -> float32 [1,28,28] / 255   3 classes (2 each)");
}

TEST_F(AdaptTest, ReadsFromFilesOnDemand) {
  set_eager_limit(1);
  put("x.npy", npy_bytes("|u1", "(3, 2)", std::string("\0\xFF\1\2\3\4", 6)));
  const Dataset d = open_dataset(at("x.npy"));
  const Adapted a = adapt_input(d, "x", {"i", DType::kFloat, {-1, 2}});
  EXPECT_EQ(all(a.column).to_doubles()[1], 1);
  std::filesystem::resize_file(at("x.npy"), 130);
  EXPECT_EQ(code([&] { all(a.column); }), "OT4005");
}

}  // namespace
}  // namespace onnxtrain
