#include "data/arrays/npy.hpp"

#include "data/arrays/inflate.hpp"
#include "data/test_files.hpp"

namespace onnxtrain {
namespace {

using namespace test;
using NpyTest = DataTest;

TEST_F(NpyTest, ReadsEveryType) {
  const std::pair<const char*, DType> types[] = {
      {"<f4", DType::kFloat},  {"<f8", DType::kDouble}, {"<f2", DType::kFloat16},
      {"|u1", DType::kUint8},  {"|i1", DType::kInt8},   {"<u2", DType::kUint16},
      {"<i2", DType::kInt16},  {"<u4", DType::kUint32}, {"<i4", DType::kInt32},
      {"<u8", DType::kUint64}, {"<i8", DType::kInt64},  {"|b1", DType::kBool}};
  for (const auto& [descr, type] : types) {
    put("a.npy", npy_bytes(descr, "(3, 2)", std::string(6 * dtype_size(type), '\1')));
    const ColumnPtr c = open_npy(at("a.npy"));
    EXPECT_EQ(c->dtype(), type);
    EXPECT_EQ(c->rows(), 3);
    EXPECT_EQ(c->row_shape(), Shape{2});
  }
}

TEST_F(NpyTest, ByteOrderAndFortranOrder) {
  put("big.npy", npy_bytes(">i4", "(2,)", std::string("\0\0\0\5\0\0\1\0", 8)));
  EXPECT_EQ(open_dataset(at("big.npy")).gather_all("big").to_ints(),
            (std::vector<int64_t>{5, 256}));
  put("f.npy", npy_bytes("<i4", "(2, 3)", raw<int32_t>({1, 4, 2, 5, 3, 6}), true));
  EXPECT_EQ(open_dataset(at("f.npy")).gather_all("f").to_ints(),
            (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
  put("f3.npy", npy_bytes("|u1", "(2, 2, 2)", {0, 4, 2, 6, 1, 5, 3, 7}, true));
  EXPECT_EQ(open_dataset(at("f3.npy")).gather_all("f3").to_doubles(),
            (std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_F(NpyTest, LargeFilesAreReadOnDemand) {
  set_eager_limit(1);
  std::vector<float> v(100);
  for (size_t i = 0; i < v.size(); ++i) v[i] = float(i);
  put("x.npy", npy_bytes("<f4", "(50, 2)", raw(v)));
  const Dataset d = open_dataset(at("x.npy"));
  EXPECT_EQ(d.column("x")->row_pointer(0), nullptr);
  Tensor out;
  d.gather("x", std::vector<int64_t>{7, 8, 9, 0}, out);
  EXPECT_EQ(out.to_doubles(), (std::vector<double>{14, 15, 16, 17, 18, 19, 0, 1}));
  put("b.npy", npy_bytes(">f4", "(1,)", std::string("\x3F\x80\0\0", 4)));
  EXPECT_EQ(open_dataset(at("b.npy")).gather_all("b").to_doubles(), std::vector<double>{1});
  std::filesystem::resize_file(at("x.npy"), 200);  // shrinks while in use
  EXPECT_EQ(code([&] { d.gather("x", std::vector<int64_t>{49}, out); }), "OT4005");
}

TEST_F(NpyTest, RefusesWhatItMust) {
  put("o.npy", npy_bytes("|O", "(1,)", "12345678"));
  EXPECT_EQ(open_code("o.npy"), "OT2146");
  put("o.npy", npy_bytes("<U3", "(1,)", std::string(12, 'x')));
  EXPECT_EQ(open_code("o.npy"), "OT2146");
  put("s.npy", npy_bytes("<f4", "()", raw<float>({1})));
  EXPECT_EQ(open_code("s.npy"), "OT2107");
  put("e.npy", npy_bytes("<f4", "(0, 5)", ""));
  EXPECT_EQ(open_code("e.npy"), "OT2101");
  const std::string ones = raw<float>({1, 2});
  for (std::string shape :
       {"(-2,)", "(2", "2", "(a,)", "(99999999999999999999,)", "(4611686018427387904, 4)",
        "(0, 4611686018427387904, 4)", "(9223372036854775807,)"})
    EXPECT_EQ(code([&] { open_dataset(put("h.npy", npy_bytes("<f4", shape, ones))); }), "OT2145")
        << shape;
  EXPECT_EQ(code([&] { open_dataset(put("h.npy", npy_bytes("<f4", "(3,)", ones))); }), "OT2147");
  EXPECT_EQ(code([&] { open_dataset(put("h.npy", npy_bytes("<f4", "(1,)", ones))); }), "OT2147");
  const Error e = error_of([&] { open_dataset(put("h.npy", npy_bytes("<f4", "(3,)", ones))); });
  EXPECT_EQ(e.kind(), ErrorKind::kData);
  EXPECT_NE(e.message().find("12 bytes"), std::string::npos);
}

TEST_F(NpyTest, SpoiledNpy) {
  spoil("x.npy", npy_bytes("<f4", "(4, 3)", std::string(48, '\1')));
  spoil("x.npy", npy_bytes(">i2", "(2, 3)", std::string(12, '\1'), true));
}

std::vector<Member> two_arrays(bool deflate, bool zip64) {
  return {{"x.npy", npy_bytes("<f4", "(4, 3)", raw(std::vector<float>(12, 1.5f))), deflate, zip64},
          {"y.npy", npy_bytes("<i8", "(4,)", raw<int64_t>({0, 1, 2, 3})), deflate, zip64}};
}

TEST_F(NpyTest, Npz) {
  for (bool deflate : {false, true})
    for (bool zip64 : {false, true}) {
      put("d.npz", zip_bytes(two_arrays(deflate, zip64)));
      const Dataset d = open_dataset(at("d.npz"));
      EXPECT_EQ(d.rows(), 4);
      EXPECT_EQ(d.columns(), (std::vector<std::string>{"x", "y"}));
      EXPECT_EQ(d.gather_all("y").to_ints(), (std::vector<int64_t>{0, 1, 2, 3}));
      EXPECT_EQ(d.gather_all("x").to_doubles(), std::vector<double>(12, 1.5));
      EXPECT_EQ(d.format(), "npz");
    }
  set_eager_limit(1);
  put("d.npz", zip_bytes(two_arrays(false, false)));
  const Dataset d = open_dataset(at("d.npz"));
  EXPECT_EQ(d.column("y")->row_pointer(0), nullptr);
  EXPECT_EQ(d.gather_all("y").to_ints(), (std::vector<int64_t>{0, 1, 2, 3}));
}

TEST_F(NpyTest, NpzParts) {
  const auto array = [](int n) {
    return npy_bytes("|u1", "(" + std::to_string(n) + ",)", std::string(size_t(n), '\1'));
  };
  put("k.npz", zip_bytes({{"x_train.npy", array(6)},
                          {"y_train.npy", array(6)},
                          {"x_test.npy", array(2)},
                          {"y_test.npy", array(2)}}));
  EXPECT_EQ(open_dataset(at("k.npz")).rows(), 6);
  OpenOptions test;
  test.part = DataPart::kTest;
  EXPECT_EQ(open_dataset(at("k.npz"), test).rows(), 2);
  EXPECT_TRUE(open_dataset(at("k.npz"), test).has("x"));
  put("m.npz", zip_bytes({{"x.npy", array(6)}, {"y.npy", array(5)}}));
  EXPECT_EQ(code([&] { open_dataset(at("m.npz")).used({"x", "y"}); }), "OT2103");
  put("e.npz", zip_bytes({{"readme.txt", "hello"}}));
  EXPECT_EQ(open_code("e.npz"), "OT2102");
  put("t.npz", zip_bytes({{"x_train.npy", array(6)}}));
  EXPECT_EQ(code([&] { open_dataset(at("t.npz"), test); }), "OT2109");
}

TEST_F(NpyTest, HostileNpz) {
  auto members = two_arrays(true, true);
  members[0].claimed = uint64_t(1) << 50;  // a size that deflate cannot reach
  put("d.npz", zip_bytes(members));
  EXPECT_EQ(open_code("d.npz"), "OT2142");
  members = two_arrays(true, false);
  members[0].claimed = members[0].data.size() - 4;  // more comes out than declared
  put("d.npz", zip_bytes(members));
  EXPECT_EQ(open_code("d.npz"), "OT2147");
  std::string header = npy_bytes("<f4", "(1000000000,)", "");
  put("d.npz", zip_bytes({{"x.npy", header, true}}));
  EXPECT_EQ(open_code("d.npz"), "OT2147");
  std::string bytes = zip_bytes(two_arrays(false, false));
  bytes[200] ^= 1;  // inside the elements of x
  put("d.npz", bytes);
  EXPECT_EQ(open_code("d.npz"), "OT2144");
  members = two_arrays(false, false);
  members[1].name = "x.npy";
  put("d.npz", zip_bytes(members));
  EXPECT_EQ(open_code("d.npz"), "OT2142");
}

TEST_F(NpyTest, SpoiledNpz) {
  spoil("d.npz", zip_bytes(two_arrays(false, false)));
  spoil("d.npz", zip_bytes(two_arrays(true, true)));
}

}  // namespace
}  // namespace onnxtrain
