#include "data/arrays/idx.hpp"

#include "data/test_files.hpp"

namespace onnxtrain {
namespace {

using namespace test;

class IdxTest : public DataTest {
 protected:
  void mnist(const std::string& prefix, uint32_t n, bool gz) {
    std::string pixels, labels;
    for (uint32_t i = 0; i < n * 4; ++i) pixels += char(i);
    for (uint32_t i = 0; i < n; ++i) labels += char(i % 3);
    const std::string images = idx_bytes(8, {n, 2, 2}, pixels), classes = idx_bytes(8, {n}, labels);
    put(prefix + "-images-idx3-ubyte" + (gz ? ".gz" : ""), gz ? gzip_bytes(images) : images);
    put(prefix + "-labels-idx1-ubyte" + (gz ? ".gz" : ""), gz ? gzip_bytes(classes) : classes);
  }
};

TEST_F(IdxTest, FolderAndParts) {
  for (bool gz : {true, false}) {
    mnist("train", 6, gz);
    mnist("t10k", 3, gz);
    const Dataset d = open_dataset(dir_ + "/");
    EXPECT_EQ(d.format(), gz ? "idx, gzip" : "idx");
    EXPECT_EQ(d.rows(), 6);
    EXPECT_EQ(d.row_shape("x"), (Shape{2, 2}));
    EXPECT_EQ(d.gather_all("y").to_doubles(), (std::vector<double>{0, 1, 2, 0, 1, 2}));
    OpenOptions test;
    test.part = DataPart::kTest;
    EXPECT_EQ(open_dataset(dir_, test).rows(), 3);
    EXPECT_EQ(open_dataset(dir_, test).source(), dir_);
  }
}

TEST_F(IdxTest, SingleFiles) {
  mnist("t10k", 3, true);
  EXPECT_EQ(open_dataset(at("t10k-images-idx3-ubyte.gz")).columns(),
            (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(open_dataset(at("t10k-labels-idx1-ubyte.gz")).columns(), std::vector<std::string>{"y"});
  EXPECT_EQ(open_dataset(dir_).rows(), 3);  // only test files: they serve
  put("other", idx_bytes(0x0D, {1, 2}, std::string("\x3F\x80\0\0\xC0\0\0\0", 8)));
  EXPECT_EQ(open_dataset(at("other")).gather_all("x").to_doubles(), (std::vector<double>{1, -2}));
  set_eager_limit(1);
  EXPECT_EQ(open_dataset(at("other")).gather_all("x").to_doubles(), (std::vector<double>{1, -2}));
}

TEST_F(IdxTest, Damaged) {
  const std::string good = idx_bytes(8, {4, 2}, std::string(8, 'a'));
  put("a", idx_bytes(8, {4, 3}, std::string(8, 'a')));
  EXPECT_EQ(open_code("a"), "OT2148");
  put("a", idx_bytes(8, {4, 1}, std::string(8, 'a')));
  EXPECT_EQ(open_code("a"), "OT2148");
  put("a", idx_bytes(8, {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, "a"));
  EXPECT_EQ(open_code("a"), "OT2148");
  put("a", gzip_bytes(idx_bytes(8, {0xFFFFFFFF}, "a")));
  EXPECT_EQ(open_code("a"), "OT2148");
  put("a", gzip_bytes(idx_bytes(8, {400}, "a")));
  EXPECT_EQ(open_code("a"), "OT2140");
  put("a", gzip_bytes(good + "more"));
  EXPECT_EQ(open_code("a"), "OT2148");
  put("a", gzip_bytes(good) + gzip_bytes("x"));  // a second stream continues the first
  EXPECT_EQ(open_code("a"), "OT2148");
  put("a", idx_bytes(8, {0}, ""));
  EXPECT_EQ(open_code("a"), "OT2101");
  std::string bad_crc = gzip_bytes(good);
  bad_crc[bad_crc.size() - 6] ^= 1;
  put("a", bad_crc);
  EXPECT_EQ(open_code("a"), "OT2140");
  spoil("b", good);
  spoil("b.gz", gzip_bytes(good));
}

}  // namespace
}  // namespace onnxtrain
