// Writing: lossless from a source, from the IR, external data, versions.
#include <filesystem>
#include <fstream>

#include "onnx/testing.hpp"

namespace onnxtrain {
namespace {

using namespace testing_onnx;

onnx::ModelProto saved(const Model& m, const OpTable& ops = primitives(),
                       const SaveOptions& o = {}) {
  onnx::ModelProto p;
  EXPECT_TRUE(p.ParseFromString(serialize_model(m, ops, o)));
  return p;
}

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / cat("onnxtrain_writer_", ::getpid())) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

TEST(OnnxWriter, UnchangedModelIsWrittenAsItWas) {
  auto p = training_model();
  p.set_producer_name("someone");
  p.set_model_version(3);
  auto* kv = p.add_metadata_props();
  kv->set_key("k");
  kv->set_value("v");
  p.mutable_graph()->mutable_node(0)->set_doc_string("about it");
  p.mutable_graph()->mutable_initializer(0)->set_doc_string("weights");
  EXPECT_EQ(differences(p, saved(load(p))), "");
}

TEST(OnnxWriter, OnlyTheNewValueChanges) {
  auto p = training_model();
  Model m = load(p);
  const std::vector<float> values = {9, 8, 7, 6, 5, 4};
  m.set_initializer("w", Tensor::vector(values).reshaped({2, 3}));
  m.metadata["onnxtrain.step"] = "1";
  const onnx::ModelProto q = saved(m);
  EXPECT_EQ(load(q).initializer("w")->to_doubles(), (std::vector<double>{9, 8, 7, 6, 5, 4}));
  EXPECT_EQ(q.metadata_props(0).key(), "onnxtrain.step");
  // everything else is equal
  p.mutable_graph()->mutable_initializer(0)->clear_float_data();
  onnx::ModelProto r = q;
  r.clear_metadata_props();
  r.mutable_graph()->mutable_initializer(0)->clear_raw_data();
  EXPECT_EQ(differences(p, r), "");
}

TEST(OnnxWriter, FromTheGraph) {
  Model m = load(training_model());
  m.edit_main();
  m.training[0].edit_algorithm();
  const onnx::ModelProto q = saved(m);
  const Model again = load(q);
  EXPECT_EQ(to_text(again.main), to_text(m.main));
  EXPECT_EQ(to_text(again.training[0].algorithm), to_text(m.training[0].algorithm));
  EXPECT_EQ(to_text(again.training[0].initialization), to_text(m.training[0].initialization));
  EXPECT_EQ(again.training[0].update_binding, m.training[0].update_binding);
  EXPECT_EQ(again.state_names(), m.state_names());
  // the gradient's type is written, because no inference rule knows it
  bool found = false;
  for (const auto& v : q.training_info(0).algorithm().value_info())
    if (v.name() == "g") found = v.type().tensor_type().shape().dim_size() == 2;
  EXPECT_TRUE(found);
}

TEST(OnnxWriter, RemarksOfNodesStay) {
  onnx::ModelProto p = training_model();
  onnx::StringStringEntryProto* e = p.mutable_graph()->mutable_node(0)->add_metadata_props();
  e->set_key("scope");
  e->set_value("layer");
  Model m = load(p);
  m.edit_main();
  const onnx::ModelProto q = saved(m);
  ASSERT_EQ(q.graph().node(0).metadata_props_size(), 1);
  EXPECT_EQ(q.graph().node(0).metadata_props(0).value(), "layer");
  EXPECT_GE(q.ir_version(), 10);
}

TEST(OnnxWriter, SubgraphsAndExpandedFunctionsFromTheGraph) {
  Model m = parse_model(R"(
    <ir_version: 10, opset_import: ["" : 17, "my" : 1]>
    g (bool c, float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
      a = my.f(x, w)
      y = If(c) <then_branch = t () => (float[2] p) { k = Constant<value = float[2] {3,4}>()  z = Mul(a, k)  p = Add(z, w) },
                 else_branch = e () => (float[2] p) { p = Identity(a) }>
    }
    <domain: "my", opset_import: ["" : 17]> f (a, b) => (c) { t = Add(a, b)  c = Relu(t) })",
                        primitives());
  m.edit_main();
  const Model again = load(saved(m));
  EXPECT_EQ(to_text(again.main), to_text(m.main));
}

TEST(OnnxWriter, InferenceOnly) {
  SaveOptions o;
  o.inference_only = true;
  const onnx::ModelProto q = saved(load(training_model()), primitives(), o);
  EXPECT_EQ(q.training_info_size(), 0);
  ASSERT_EQ(q.opset_import_size(), 1);
  EXPECT_EQ(q.opset_import(0).domain(), "");
}

TEST(OnnxWriter, OwnFunctionsComeAlong) {
  OpTable ops = make_table(true);
  Op op;
  op.name = "Scaled";
  op.domain = std::string(kOwnDomain);
  op.function = R"(<domain: "ai.onnxtrain", opset_import: ["" : 17, "ai.onnxtrain" : 1]>
    Scaled <s: float = 2.0> (x) => (y) { k = Constant<value_float: float = @s>()  h = ai.onnxtrain.Half(x)  y = Mul(h, k) })";
  ops.add(op);
  op.name = "Half";
  op.function =
      R"(<domain: "ai.onnxtrain", opset_import: ["" : 17]> Half (x) => (y) { k = Constant<value_float = 0.5>()  y = Mul(x, k) })";
  ops.add(op);

  Model m;
  m.opsets = {{"", 17}};
  Graph& g = m.edit_main();
  g.name = "g";
  const ValueId x = g.add_value("x", TypeInfo::tensor(DType::kFloat, {2}));
  g.inputs = {x};
  Node n;
  n.op = "Scaled";
  n.domain = std::string(kOwnDomain);
  n.version = 1;
  n.inputs = {x};
  n.attrs["s"] = 3.0f;
  g.outputs = g.add_node(std::move(n), 1, "y");
  const onnx::ModelProto q = saved(m, ops);
  ASSERT_EQ(q.functions_size(), 2);
  EXPECT_EQ(q.ir_version(), 8);
  // ours: one node with its type through the body; others see standard operators
  const Model ours = load(q, ops);
  EXPECT_EQ(ours.main.nodes.size(), 1u);
  EXPECT_EQ(to_string(ours.main.value(ours.main.outputs[0]).type), "float[2]");
  EXPECT_EQ(load(q, primitives()).main.nodes.size(), 2u);
}

TEST(OnnxWriter, IrVersionByTableAndFeature) {
  auto ir = [](int opset, DType t, int cap) {
    Model m;
    m.opsets = {{"", opset}};
    Graph& g = m.edit_main();
    const ValueId x = g.add_value("x", TypeInfo::tensor(t, {2}));
    g.inputs = g.outputs = {x};
    SaveOptions o;
    o.ir_cap = cap;
    return int(saved(m, primitives(), o).ir_version());
  };
  EXPECT_EQ(ir(8, DType::kFloat, 0), 3);
  EXPECT_EQ(ir(13, DType::kFloat, 0), 7);
  EXPECT_EQ(ir(17, DType::kFloat, 0), 8);
  EXPECT_EQ(ir(17, DType::kInt4, 0), 10);
  EXPECT_EQ(ir(22, DType::kFloat, 0), 10);
  EXPECT_EQ(ir(28, DType::kFloat, 0), 14);
  EXPECT_EQ(ir(28, DType::kFloat, 10), 10);
  EXPECT_THROW(ir(28, DType::kInt4, 9), Error);
}

TEST(OnnxWriter, ExternalDataRoundTrip) {
  const Folder folder;
  auto p = training_model();
  auto* big = p.mutable_training_info(0)->mutable_algorithm()->add_initializer();
  big->set_name("momentum");
  big->set_data_type(1);
  big->add_dims(1000);
  big->set_raw_data(std::string(4000, '\x11'));
  SaveOptions o;
  o.external_threshold = 1000;
  const std::string path = folder.file("m.onnx");
  save_model(load(p), path, primitives(), o);
  EXPECT_EQ(std::filesystem::file_size(path + ".data"), 4000u);
  const Model m = load_model(path, primitives());
  EXPECT_EQ(std::memcmp(m.initializer("momentum")->data(), big->raw_data().data(), 4000), 0);
  EXPECT_EQ(differences(p, saved(m)), "");  // in memory the data is inside again
  // saving over itself keeps a valid pair of files at any moment, and leaves one data file
  save_model(m, path, primitives());
  EXPECT_EQ(differences(p, saved(load_model(path, primitives()))), "");
  EXPECT_NE(std::filesystem::exists(path + ".data"), std::filesystem::exists(path + ".2.data"));
}

TEST(OnnxWriter, ExternalDataStaysInTheFolder) {
  const Folder folder;
  auto with_location = [&](const std::string& location, const std::string& length) {
    auto p = parse<onnx::ModelProto>(
        "<ir_version: 8, opset_import: [\"\" : 17]> g (float[2] x) => (y) { y = Add(x, w) }");
    auto* t = p.mutable_graph()->add_initializer();
    t->set_name("w");
    t->set_data_type(1);
    t->add_dims(2);
    t->set_data_location(onnx::TensorProto_DataLocation_EXTERNAL);
    auto add = [&](const char* k, const std::string& v) {
      auto* kv = t->add_external_data();
      kv->set_key(k);
      kv->set_value(v);
    };
    add("location", location);
    add("offset", "0");
    add("length", length);
    std::ofstream(folder.file("m.onnx"), std::ios::binary) << p.SerializeAsString();
    try {
      load_model(folder.file("m.onnx"), primitives());
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kModel);
      return e.code();
    }
    return std::string();
  };
  std::ofstream(folder.file("good"), std::ios::binary) << "12345678";
  std::ofstream(folder.file("short"), std::ios::binary) << "1234";
  std::filesystem::create_symlink("/etc/passwd", folder.file("link"));
  EXPECT_EQ(with_location("good", "8"), "");
  EXPECT_EQ(with_location("short", "8"), "OT1011");
  EXPECT_EQ(with_location("good", "4"), "OT1010");
  EXPECT_EQ(with_location("good", "-8"), "OT1011");
  EXPECT_NE(with_location("/etc/passwd", "8"), "");
  EXPECT_NE(with_location("../../../etc/passwd", "8"), "");
  EXPECT_NE(with_location("link", "8"), "");
  EXPECT_NE(with_location("missing", "8"), "");
}

}  // namespace
}  // namespace onnxtrain
