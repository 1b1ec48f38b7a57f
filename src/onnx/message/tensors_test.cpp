// Every element type through both forms of a TensorProto, and the gate for lying tensors.
#include "onnx/message/tensors.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace onnxtrain {
namespace {

std::shared_ptr<ModelSource> source() { return std::make_shared<ModelSource>("", LoadLimits{}); }

std::string code_of(const onnx::TensorProto& p) {
  try {
    read_tensor(p, {source(), false});
  } catch (const Error& e) {
    return e.code();
  }
  return {};
}

TEST(OnnxTensors, EveryTypeSurvivesWriteAndRead) {
  for (int k = 1; k < kDTypeCount; ++k) {
    const DType t = DType(k);
    Tensor x(t, {3, 5});
    if (t == DType::kString) {
      for (int i = 0; i < 15; ++i) x.as<std::string>()[i] = cat("s", i);
    } else {
      auto* bytes = static_cast<uint8_t*>(x.data());
      for (size_t i = 0; i < x.bytes(); ++i) bytes[i] = uint8_t(i * 7 + 1);
      if (t == DType::kBool)
        for (int i = 0; i < 15; ++i) bytes[i] = i % 2;
      if (t == DType::kInt4)
        for (int i = 0; i < 15; ++i) x.as<Int4>()[i] = Int4(i - 8);
      if (t == DType::kUint4 || t == DType::kFloat4E2M1)
        for (int i = 0; i < 15; ++i) bytes[i] = uint8_t(i);
      if (t == DType::kInt2)
        for (int i = 0; i < 15; ++i) x.as<Int2>()[i] = Int2(i % 4 - 2);
      if (t == DType::kUint2)
        for (int i = 0; i < 15; ++i) bytes[i] = uint8_t(i % 4);
    }
    onnx::TensorProto p;
    write_tensor(x, p);
    const Tensor y = read_tensor(p, {source(), false});
    ASSERT_EQ(y.dtype(), t);
    ASSERT_EQ(y.shape(), x.shape());
    if (t == DType::kString) {
      for (int i = 0; i < 15; ++i) EXPECT_EQ(y.as<std::string>()[i], x.as<std::string>()[i]);
    } else {
      EXPECT_EQ(std::memcmp(x.data(), y.data(), x.bytes()), 0) << dtype_name(t);
    }
  }
}

TEST(OnnxTensors, TypedFields) {
  onnx::TensorProto p;
  p.add_dims(2);
  p.set_data_type(10);  // float16: bit patterns in int32_data
  p.add_int32_data(0x3C00);
  p.add_int32_data(0xC000);
  Tensor t = read_tensor(p, {source(), false});
  EXPECT_EQ(float(t.as<Half>()[0]), 1.0f);
  EXPECT_EQ(float(t.as<Half>()[1]), -2.0f);

  p.Clear();
  p.add_dims(3);
  p.set_data_type(22);  // int4: two in a byte
  p.add_int32_data(0x8F);
  p.add_int32_data(0x07);
  t = read_tensor(p, {source(), false});
  EXPECT_EQ(int(t.as<Int4>()[0]), -1);
  EXPECT_EQ(int(t.as<Int4>()[1]), -8);
  EXPECT_EQ(int(t.as<Int4>()[2]), 7);

  p.Clear();
  p.add_dims(1);
  p.set_data_type(14);  // complex64: two floats each
  p.add_float_data(1);
  p.add_float_data(2);
  t = read_tensor(p, {source(), false});
  EXPECT_EQ(t.as<std::complex<float>>()[0], std::complex<float>(1, 2));

  p.Clear();
  p.add_dims(2);
  p.set_data_type(12);  // uint32 in uint64_data
  p.add_uint64_data(7);
  p.add_uint64_data(4000000000u);
  EXPECT_EQ(read_tensor(p, {source(), false}).as<uint32_t>()[1], 4000000000u);
}

TEST(OnnxTensors, RawDataIsSharedNotCopied) {
  auto s = source();
  onnx::TensorProto& p = *s->proto.mutable_graph()->add_initializer();
  p.set_data_type(1);
  p.add_dims(100);
  p.set_raw_data(std::string(400, 'a'));
  const Tensor t = read_tensor(p, {s, true});
  EXPECT_EQ(t.data(), static_cast<const void*>(p.raw_data().data()));
}

TEST(OnnxTensors, LyingTensorsAreRefusedBeforeAllocating) {
  onnx::TensorProto p;
  p.set_name("w");
  p.set_data_type(1);
  p.add_dims(int64_t(1) << 40);
  p.set_raw_data("abcd");
  EXPECT_EQ(code_of(p), "OT1010");  // far too short
  p.add_dims(int64_t(1) << 40);
  EXPECT_EQ(code_of(p), "OT1010");  // overflow
  p.clear_dims();
  p.add_dims(-1);
  EXPECT_EQ(code_of(p), "OT1010");
  p.clear_dims();
  for (int i = 0; i < 65; ++i) p.add_dims(1);
  EXPECT_EQ(code_of(p), "OT1003");
  p.clear_dims();
  p.set_data_type(99);
  EXPECT_EQ(code_of(p), "OT1010");
  p.set_data_type(1);
  p.add_float_data(1);
  EXPECT_EQ(code_of(p), "OT1010");  // twice
  p.clear_raw_data();
  EXPECT_EQ(code_of(p), "");
  p.add_float_data(1);
  EXPECT_EQ(code_of(p), "OT1010");  // too long is wrong too
  p.clear_float_data();
  p.set_data_location(onnx::TensorProto_DataLocation_EXTERNAL);
  EXPECT_EQ(code_of(p), "OT1011");  // no location
}

TEST(OnnxTensors, SparseBecomesDense) {
  onnx::SparseTensorProto p;
  p.add_dims(2);
  p.add_dims(3);
  p.mutable_values()->set_data_type(1);
  p.mutable_values()->add_dims(2);
  p.mutable_values()->add_float_data(5);
  p.mutable_values()->add_float_data(6);
  p.mutable_indices()->set_data_type(7);
  p.mutable_indices()->add_dims(2);
  p.mutable_indices()->add_int64_data(1);
  p.mutable_indices()->add_int64_data(5);
  const Tensor t = read_sparse_as_dense(p, {source(), false});
  const std::vector<double> want = {0, 5, 0, 0, 0, 6};
  EXPECT_EQ(t.to_doubles(), want);
  p.mutable_indices()->set_int64_data(1, 6);
  EXPECT_THROW(read_sparse_as_dense(p, {source(), false}), Error);
  p.mutable_indices()->set_int64_data(1, 1);
  EXPECT_THROW(read_sparse_as_dense(p, {source(), false}), Error);
  p.set_dims(0, int64_t(1) << 33);
  EXPECT_THROW(read_sparse_as_dense(p, {source(), false}),
               Error);  // a few bytes that claim gigabytes
}

}  // namespace
}  // namespace onnxtrain
