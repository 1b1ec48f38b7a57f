#include "data/open.hpp"

#include "data/sampler.hpp"
#include "data/table/foreign_table.hpp"
#include "data/test_files.hpp"

namespace onnxtrain {
namespace {

using namespace test;
using OpenTest = DataTest;
using Map = std::map<std::string, std::string>;

TEST_F(OpenTest, Folders) {
  put("x.npy", npy_bytes("<f4", "(2,)", raw<float>({1, 2})));
  put("y.npy", npy_bytes("<i8", "(2,)", raw<int64_t>({0, 1})));
  EXPECT_EQ(open_dataset(dir_).columns(), (std::vector<std::string>{"x", "y"}));
  std::filesystem::create_directory(at("two"));
  put("two/train.csv", "1,2\n3,4\n");
  put("two/test.csv", "1,2\n");
  EXPECT_EQ(open_dataset(at("two")).rows(), 2);
  OpenOptions test;
  test.part = DataPart::kTest;
  EXPECT_EQ(open_dataset(at("two"), test).rows(), 1);
  std::filesystem::create_directory(at("none"));
  put("none/readme.md", "x");
  EXPECT_EQ(open_code("none"), "OT2102");
  put("two/other.csv", "1,2\n");
  std::filesystem::remove(at("two/train.csv"));
  EXPECT_EQ(open_code("two"), "OT2102");
}

TEST_F(OpenTest, UnknownAndMissing) {
  put("p", std::string("\x80\x04\x95xx", 5));
  const Error e = error_of([&] { open_dataset(at("p")); });
  EXPECT_EQ(e.code(), "OT2102");
  EXPECT_NE(e.message().find("pickle"), std::string::npos);
  set_table_reader({});  // one that a test of the command line left
  put("q", "PAR1\x15\x04");
  EXPECT_NE(error_of([&] { open_dataset(at("q")); }).message().find("parquet"), std::string::npos);
  put("empty", "");
  EXPECT_EQ(open_code("empty"), "OT2101");
  const Error missing = error_of([&] { open_dataset(at("nothing.npz")); });
  EXPECT_EQ(missing.kind(), ErrorKind::kData);
  EXPECT_EQ(missing.code(), "OT4001");
  EXPECT_EQ(code([] { open_dataset("/dev/null"); }), "OT4002");
}

TEST_F(OpenTest, Synthetic) {
  const Dataset d = open_dataset("synthetic:classes=3,rows=60,x=2x4,seed=5");
  EXPECT_EQ(d.rows(), 60);
  EXPECT_EQ(d.row_shape("x"), (Shape{2, 4}));
  for (int64_t y : d.gather_all("y").to_ints()) EXPECT_TRUE(y >= 0 && y < 3);
  EXPECT_EQ(d.gather_all("x").to_doubles(),
            open_dataset("synthetic:classes=3,rows=60,x=2x4,seed=5").gather_all("x").to_doubles());
  OpenOptions o;
  o.part = DataPart::kTest;
  EXPECT_NE(
      d.gather_all("x").to_doubles(),
      open_dataset("synthetic:classes=3,rows=60,x=2x4,seed=5", o).gather_all("x").to_doubles());
  EXPECT_EQ(open_dataset("synthetic:targets=2,rows=5,x=3").row_shape("y"), Shape{2});
  EXPECT_EQ(open_dataset("synthetic:vocab=9,rows=5,x=3").row_shape("y"), Shape{3});
  o.x_shape = {7};
  o.classes = 4;
  EXPECT_EQ(open_dataset("synthetic:", o).row_shape("x"), Shape{7});
  for (std::string bad : {"synthetic:rows=5", "synthetic:x=3,row=4", "synthetic:x=3,rows=-4",
                          "synthetic:x=axb", "synthetic:x=3,classes=2,targets=1", "synthetic:x=0"})
    EXPECT_EQ(code([&] { open_dataset(bad); }), "OT2150") << bad;
  EXPECT_EQ(code([] { open_dataset("synthetic:x=3,rows=0"); }), "OT2101");
  EXPECT_EQ(code([] { open_dataset("synthetic:x=3,rows=100000000000"); }), "OT1401");
}

TEST_F(OpenTest, SyntheticClassesAreSeparable) {
  // nearest mean of the training rows classifies nearly all test rows
  OpenOptions test;
  test.part = DataPart::kTest;
  const std::string spec = "synthetic:classes=5,rows=500,x=16";
  const Dataset a = open_dataset(spec), b = open_dataset(spec, test);
  const auto xa = a.gather_all("x").to_doubles(), xb = b.gather_all("x").to_doubles();
  const auto ya = a.gather_all("y").to_ints(), yb = b.gather_all("y").to_ints();
  std::vector<double> mean(5 * 16), count(5);
  for (size_t r = 0; r < 500; ++r) {
    ++count[size_t(ya[r])];
    for (size_t i = 0; i < 16; ++i) mean[size_t(ya[r]) * 16 + i] += xa[r * 16 + i];
  }
  int right = 0;
  for (size_t r = 0; r < 500; ++r) {
    double best = 1e30;
    int64_t guess = 0;
    for (size_t c = 0; c < 5; ++c) {
      double d = 0;
      for (size_t i = 0; i < 16; ++i) {
        const double t = xb[r * 16 + i] - mean[c * 16 + i] / count[c];
        d += t * t;
      }
      if (d < best) best = d, guess = int64_t(c);
    }
    right += guess == yb[r];
  }
  EXPECT_GT(right, 450);
}

Dataset columns(const std::vector<std::string>& names) {
  std::vector<std::pair<std::string, Tensor>> arrays;
  for (const std::string& n : names) arrays.emplace_back(n, Tensor::vector<float>({1, 2}));
  return Dataset::from_tensors(arrays);
}

TEST_F(OpenTest, MatchesColumns) {
  EXPECT_EQ(match_columns(columns({"x", "y"}), {"image"}, {"label"}, {}),
            (Map{{"image", "x"}, {"label", "y"}}));
  EXPECT_EQ(match_columns(columns({"label", "image"}), {"image"}, {"label"}, {}),
            (Map{{"image", "image"}, {"label", "label"}}));
  EXPECT_EQ(match_columns(columns({"a", "b", "y"}), {"a", "b"}, {"t"}, {}),
            (Map{{"a", "a"}, {"b", "b"}, {"t", "y"}}));
  EXPECT_EQ(match_columns(columns({"arr_0", "arr_1"}), {"in"}, {"t"}, {}),
            (Map{{"in", "arr_0"}, {"t", "arr_1"}}));
  EXPECT_EQ(match_columns(columns({"foo", "labels"}), {"in"}, {"t"}, {}),
            (Map{{"in", "foo"}, {"t", "labels"}}));
  EXPECT_EQ(match_columns(columns({"p", "q"}), {"in"}, {"t"}, {{"in", "q"}}),
            (Map{{"in", "q"}, {"t", "p"}}));
  EXPECT_EQ(match_columns(columns({"x"}), {"in"}, {"t"}, {}, true), (Map{{"in", "x"}}));
  EXPECT_EQ(match_columns(columns({"x0", "x1"}), {"l", "r"}, {}, {}),
            (Map{{"l", "x0"}, {"r", "x1"}}));
  EXPECT_EQ(code([] { match_columns(columns({"p", "q"}), {"in"}, {"t"}, {}); }), "OT2106");
  EXPECT_EQ(code([] { match_columns(columns({"x"}), {"in"}, {"t"}, {}); }), "OT2106");
  const Error e = error_of([] { match_columns(columns({"x"}), {"in"}, {}, {{"im", "x"}}); });
  EXPECT_EQ(e.code(), "OT2106");
  EXPECT_EQ(e.hint(), "--map in=x");
  EXPECT_EQ(code([] { match_columns(columns({"x"}), {"in"}, {}, {{"in", "z"}}); }), "OT2105");
}

TEST_F(OpenTest, ComposedDatasets) {
  const Dataset d = Dataset::from_tensors({{"x", Tensor::vector<float>({0, 1, 2, 3, 4})},
                                           {"y", Tensor::vector<int64_t>({5, 6, 7, 8, 9})}});
  const Dataset s = d.subset({4, 2, 0}).subset({0, 2});
  EXPECT_EQ(s.rows(), 2);
  EXPECT_EQ(s.gather_all("y").to_ints(), (std::vector<int64_t>{9, 5}));
  EXPECT_EQ(s.column("y")->source_row(0), 4);
  EXPECT_EQ(code([&] { d.column("z"); }), "OT2105");
  const Dataset uneven = Dataset::from_tensors({{"x", Tensor::vector<float>({1})},
                                                {"y", Tensor::vector<float>({1, 2})},
                                                {"z", Tensor::vector<float>({3, 4})}});
  EXPECT_EQ(code([&] { uneven.used({"x", "y"}); }), "OT2103");
  const Dataset even = uneven.used({"y", "z"});
  EXPECT_EQ(even.rows(), 2);
  EXPECT_FALSE(even.has("x"));
  ASSERT_EQ(even.notes().size(), 1u);
  EXPECT_NE(even.notes()[0].find("not used: 'x'"), std::string::npos);
  EXPECT_TRUE(d.used({"x", "y"}).notes().empty());
  EXPECT_EQ(describe_column(*d.column("x")), "5 rows float32");
  EXPECT_EQ(rounded_count(5421), "5.4k");
}

}  // namespace
}  // namespace onnxtrain
