// Large initializers past protobuf: the same model as without, whatever the bytes.
#include "onnx/message/lift.hpp"

#include <random>

#include "onnx/message/source.hpp"
#include "onnx/testing.hpp"

namespace onnxtrain {
namespace {

using namespace testing_onnx;

constexpr int kRows = 400, kColumns = 100;  // 160 kB of float32

onnx::ModelProto large_model() {
  auto m = parse<onnx::ModelProto>(R"(<ir_version: 8, opset_import: ["" : 17]>
      g (float[N,100] x) => (float[N,400] y, float[N,400] z) <float[2] small = {1, 2}> {
        t = Transpose(w)  y = MatMul(x, t)  z = MatMul(x, v) })");
  for (const char* name : {"w", "v"}) {
    auto* t = m.mutable_graph()->add_initializer();
    t->set_name(name);
    t->set_data_type(1);
    t->add_dims(name[0] == 'w' ? kRows : kColumns);
    t->add_dims(name[0] == 'w' ? kColumns : kRows);
    std::vector<float> values(kRows * kColumns);
    for (size_t k = 0; k < values.size(); ++k) values[k] = float(k) * (name[0] == 'w' ? 1 : -1);
    t->set_raw_data(values.data(), values.size() * sizeof(float));
    t->set_doc_string("kept");
  }
  return m;
}

MessageBytes bytes_of(const std::string& text) {
  MessageBytes m;
  m.size = text.size();
  m.read = [&text](uint64_t at, void* out, size_t n) { text.copy(static_cast<char*>(out), n, at); };
  return m;
}

TEST(Lift, DataLeavesTheMessageAndComesBack) {
  const onnx::ModelProto m = large_model();
  const std::string text = m.SerializeAsString();
  std::vector<LiftedTensor> lifted;
  const auto rest = lift_tensors(bytes_of(text), lifted);
  ASSERT_TRUE(rest);
  ASSERT_EQ(lifted.size(), 2u);
  EXPECT_LT(rest->size(), 2000u);
  for (int k = 0; k < 2; ++k)
    EXPECT_EQ(
        std::string(static_cast<char*>(lifted[size_t(k)].data.get()), lifted[size_t(k)].bytes),
        m.graph().initializer(k + 1).raw_data());
  const Model loaded = load_model_bytes(text, "", everything());
  onnx::ModelProto again;
  ASSERT_TRUE(again.ParseFromString(serialize_model(loaded, everything())));
  EXPECT_EQ(differences(m, again), "");
}

TEST(Lift, NothingOfTheModelKeepsDataThatNobodyReads) {
  Model m = load_model_bytes(large_model().SerializeAsString(), "", everything());
  std::weak_ptr<void> data = m.initializer("w")->owner();
  Model changed = m;
  Tensor threes(DType::kFloat, {kRows, kColumns});
  std::fill_n(threes.as<float>(), kRows * kColumns, 3.f);
  changed.set_initializer("w", threes);
  m = Model();
  EXPECT_TRUE(data.expired());
  onnx::ModelProto p;
  ASSERT_TRUE(p.ParseFromString(serialize_model(changed, everything())));
  EXPECT_EQ(p.graph().initializer(1).raw_data().size(), size_t(4 * kRows * kColumns));
  EXPECT_EQ(p.graph().initializer(2).raw_data(), large_model().graph().initializer(2).raw_data());
}

// A second place of data, data of the wrong size: as protobuf and the checker see it without
// lifting.
TEST(Lift, WhatIsWrongIsSaid) {
  auto code = [](const onnx::ModelProto& m) {
    try {
      load_model_bytes(m.SerializeAsString(), "", everything());
    } catch (const Error& e) {
      return e.code();
    }
    return std::string();
  };
  onnx::ModelProto twice = large_model();
  twice.mutable_graph()->mutable_initializer(1)->add_float_data(1);
  EXPECT_EQ(code(twice), "OT1010");
  onnx::ModelProto short_data = large_model();
  short_data.mutable_graph()->mutable_initializer(1)->mutable_raw_data()->pop_back();
  EXPECT_EQ(code(short_data), "OT1010");
  onnx::ModelProto forged = large_model();  // a file that names what only this program may name
  auto* t = forged.mutable_graph()->mutable_initializer(2);
  t->clear_raw_data();
  t->set_data_location(onnx::TensorProto_DataLocation_EXTERNAL);
  auto* e = t->add_external_data();
  e->set_key("location");
  e->set_value(lifted_location(7));
  EXPECT_EQ(code(forged), "OT1011");
}

TEST(Lift, DamagedMessagesAreAModelOrAnError) {
  const std::string good = large_model().SerializeAsString();
  std::mt19937 random(3);
  std::vector<size_t> structure;  // everything but the data itself
  for (size_t k = 0; k < good.size(); ++k)
    if (k < 400 || k > good.size() - 200 || (k > 160200 && k < 160600)) structure.push_back(k);
  for (int round = 0; round < 3000; ++round) {
    std::string bad = good;
    for (unsigned k = 0; k <= random() % 2; ++k)
      bad[structure[random() % structure.size()]] = char(random());
    if (round % 5 == 0) bad.resize(random() % bad.size());
    onnx::ModelProto p;
    const bool parses = p.ParseFromString(bad) && p.has_graph();
    std::string code;
    try {
      load_model_bytes(bad, "", everything());
    } catch (const Error& e) {
      code = e.code();
    }
    if (!parses) {
      EXPECT_EQ(code, "OT1002") << round;
    }
  }
}

}  // namespace
}  // namespace onnxtrain
