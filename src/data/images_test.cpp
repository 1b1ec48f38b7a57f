// Image folders and safetensors files.
#include "data/images.hpp"

#include "data/arrays/safetensors.hpp"
#include "data/test_files.hpp"

namespace onnxtrain {
namespace {

using test::little;
using test::raw;

class Images : public test::DataTest {
 protected:
  // A PPM image of one colour.
  void image(const std::string& name, int height, int width, uint8_t r, uint8_t g, uint8_t b) {
    std::filesystem::create_directories(std::filesystem::path(at(name)).parent_path());
    std::string bytes = cat("P6\n", width, " ", height, "\n255\n");
    for (int i = 0; i < height * width; ++i) bytes += {char(r), char(g), char(b)};
    put(name, bytes);
  }
  Dataset open(const std::string& name, Shape row, DataPart part = DataPart::kTrain) {
    OpenOptions o;
    o.part = part;
    o.x_shape = std::move(row);
    return open_dataset(at(name), o);
  }
};

TEST_F(Images, ClassesAreSubfoldersInOrder) {
  image("p/dog/1.ppm", 2, 2, 10, 20, 30);
  image("p/cat/2.ppm", 2, 2, 40, 50, 60);
  image("p/cat/1.ppm", 2, 2, 70, 80, 90);
  put("p/cat/notes.txt", "not an image");
  const Dataset d = open("p", {3, 2, 2});
  EXPECT_EQ(d.class_names("y"), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(d.gather_all("y").to_ints(), (std::vector<int64_t>{0, 0, 1}));
  const Tensor x = d.gather_all("x");
  EXPECT_EQ(x.shape(), (Shape{3, 3, 2, 2}));
  EXPECT_EQ(x.as<uint8_t>()[0], 70);   // cat/1, red
  EXPECT_EQ(x.as<uint8_t>()[4], 80);   // green
  EXPECT_EQ(x.as<uint8_t>()[24], 10);  // dog/1
}

TEST_F(Images, TrainAndTestFolders) {
  image("p/train/a/1.ppm", 1, 1, 1, 1, 1);
  image("p/train/b/1.ppm", 1, 1, 2, 2, 2);
  image("p/test/a/1.ppm", 1, 1, 3, 3, 3);
  EXPECT_EQ(open("p", {3, 1, 1}).rows(), 2);
  EXPECT_EQ(open("p", {3, 1, 1}, DataPart::kTest).rows(), 1);
}

TEST_F(Images, TakeTheSizeTheModelWants) {
  image("p/a/1.ppm", 5, 7, 100, 150, 200);
  for (const Shape& row : {Shape{3, 4, 4}, Shape{4, 4, 3}, Shape{1, 9, 9}, Shape{6, 6}}) {
    const Tensor x = open("p", row).gather_all("x");
    const bool grey = row.size() == 2 || row[0] == 1;
    for (int64_t i = 0; i < x.size(); ++i) {
      const int v = x.as<uint8_t>()[i];
      if (grey)
        EXPECT_EQ(v, 141);  // 0.299 * 100 + 0.587 * 150 + 0.114 * 200
      else
        EXPECT_TRUE(v == 100 || v == 150 || v == 200) << v;
    }
  }
}

TEST_F(Images, ResamplingKeepsTheMean) {
  std::vector<uint8_t> ramp;
  for (int i = 0; i < 64; ++i) ramp.push_back(uint8_t(i * 4));
  const std::vector<float> half = resample(ramp, 1, 64, 1, 1, 32);
  for (int i = 1; i < 31; ++i) EXPECT_NEAR(half[size_t(i)], i * 8 + 2, 1e-4);
  EXPECT_EQ(resample(ramp, 1, 64, 1, 1, 64), std::vector<float>(ramp.begin(), ramp.end()));
  const std::vector<uint8_t> row = {0, 10, 20, 30, 40, 50, 60, 70};
  EXPECT_EQ(resized(row, 1, 8, 1, 1, 4, "crop"), (std::vector<float>{20, 30, 40, 50}));
  EXPECT_EQ(resized({9, 9, 9, 9}, 4, 1, 1, 2, 2, "pad"), (std::vector<float>{9, 0, 9, 0}));
  EXPECT_EQ(resized({7, 7, 7, 7, 7, 7}, 3, 2, 1, 3, 4, "pad"),
            (std::vector<float>{0, 7, 7, 0, 0, 7, 7, 0, 0, 7, 7, 0}));
  const std::vector<float> twice = resample({0, 100}, 1, 2, 1, 1, 4);
  EXPECT_EQ(twice, (std::vector<float>{0, 25, 75, 100}));
}

TEST_F(Images, NumbersAreNotRounded) {
  std::filesystem::create_directories(at("p/a"));
  put("p/a/1.pgm", std::string("P5\n2 1\n255\n") + char(0) + char(101));
  OpenOptions o;
  o.x_shape = {1, 1, 4};
  EXPECT_EQ(open_dataset(at("p"), o).gather_all("x").to_doubles(),
            (std::vector<double>{0, 25, 76, 101}));
  o.images.numbers = true;
  EXPECT_EQ(open_dataset(at("p"), o).gather_all("x").to_doubles(),
            (std::vector<double>{0, 25.25, 75.75, 101}));
}

TEST_F(Images, WithoutASizeAllMustBeAlike) {
  image("p/a/1.ppm", 2, 2, 1, 1, 1);
  EXPECT_EQ(open("p", {}).row_shape("x"), (Shape{3, 2, 2}));
  EXPECT_EQ(open("p", {4}).row_shape("x"), (Shape{1, 2, 2}));
  image("p/a/2.ppm", 2, 3, 1, 1, 1);
  EXPECT_EQ(code([&] { open("p", {}); }), "OT2141");
}

TEST_F(Images, DamagedOnesAreNamed) {
  image("p/a/1.ppm", 2, 2, 1, 1, 1);
  put("p/a/2.png", "not an image at all");
  const Error e = error_of([&] { open("p", {3, 2, 2}); });
  EXPECT_EQ(e.kind(), ErrorKind::kData);
  EXPECT_NE(std::string(e.what()).find("2.png"), std::string::npos);
}

TEST_F(Images, WithoutClassesThereAreNoLabels) {
  image("p/2.ppm", 1, 1, 2, 2, 2);
  image("p/1.ppm", 1, 1, 1, 1, 1);
  const Dataset d = open("p", {3, 1, 1});
  EXPECT_EQ(d.columns(), (std::vector<std::string>{"x"}));
  EXPECT_EQ(d.gather_all("x").as<uint8_t>()[0], 1);
}

using Safetensors = test::DataTest;

std::string safetensors(const std::string& header, const std::string& data) {
  return little(header.size(), 8) + header + data;
}

TEST_F(Safetensors, ArraysByName) {
  const std::string data = raw<float>({1, 2, 3, 4}) + raw<int64_t>({0, 1});
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"x_train":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
      R"("y_train":{"dtype":"I64","shape":[2],"data_offsets":[16,32]}})";
  put("a.safetensors", safetensors(header, data));
  const Dataset d = open_dataset(at("a.safetensors"));
  EXPECT_EQ(d.rows(), 2);
  EXPECT_EQ(d.gather_all("x").to_doubles(), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(d.gather_all("y").to_ints(), (std::vector<int64_t>{0, 1}));
  set_eager_limit(1);
  EXPECT_EQ(open_dataset(at("a.safetensors")).gather_all("x").to_doubles()[3], 4);
  set_eager_limit(0);
  spoil("b.safetensors", safetensors(header, data));
}

TEST_F(Safetensors, HolesOverlapsAndLiesAreRefused) {
  const std::string data(16, '\0');
  for (
      const char* header :
      {R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",   // does not fill
       R"({"x":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}})",  // a hole
       R"({"x":{"dtype":"F32","shape":[3],"data_offsets":[0,16]}})",  // too small
       R"({"x":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"y":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})",
       R"({"x":{"dtype":"F32","shape":[9223372036854775807,4],"data_offsets":[0,16]}})",
       R"({"x":{"dtype":"F32","shape":[-4],"data_offsets":[0,16]}})",
       R"({"x":{"dtype":"Q4","shape":[4],"data_offsets":[0,16]}})",
       R"({"x":{"dtype":"F32","shape":[4]}})",
       R"({"x":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]})"}) {
    put("a.safetensors", safetensors(header, data));
    EXPECT_EQ(open_code("a.safetensors"), "OT2142") << header;
  }
}

}  // namespace
}  // namespace onnxtrain
