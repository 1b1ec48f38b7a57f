// A model's graphs for converters: which operators stand, where tensors come from, what is kept.
#include "onnx/graph_view.hpp"

#include <nlohmann/json.hpp>

#include "onnx/testing.hpp"

namespace onnxtrain {
namespace {

using namespace testing_onnx;
using nlohmann::json;

constexpr const char* kText = R"(
<ir_version: 10, opset_import: ["": 21, "local": 1]>
g (float[N,2] x) => (float[N,2] y)
<float[2] w = {1.5, -2}>
{
  [first] a = local.Twice (x)
  h = HardSwish (a)
  c = Constant <value = float {3}> ()
  b = Mul (h, w)
  y = Mul (b, c)
}
<domain: "local", opset_import: ["": 21]>
Twice (p) => (q)
{
  q = Add (p, p)
}
)";

std::vector<std::string> ops_of(const json& graph) {
  std::vector<std::string> out;
  for (const json& n : graph["nodes"]) out.push_back(n["op"]);
  return out;
}

TEST(GraphView, CallerSaysWhichOperatorsStand) {
  const Model m = parse_model(kText, everything());
  auto all = [](const std::string&, const std::string&) { return true; };
  auto no_swish = [](const std::string&, const std::string& op) { return op != "HardSwish"; };
  const json kept = json::parse(view_model(m, everything(), all).json);
  // a function of the file means what the file says, whatever the caller knows
  EXPECT_EQ(ops_of(kept["main"]), (std::vector<std::string>{"Add", "HardSwish", "Mul", "Mul"}));
  const std::vector<std::string> body =
      ops_of(json::parse(view_model(m, everything(), no_swish).json)["main"]);
  EXPECT_EQ(std::count(body.begin(), body.end(), "HardSwish"), 0);
  EXPECT_EQ(std::count(body.begin(), body.end(), "HardSigmoid"), 1);
  EXPECT_EQ(kept["functions"][0]["inputs"][0], "p");
  EXPECT_EQ(kept["main"]["types"]["y"]["shape"], json::parse(R"(["N", 2])"));
}

TEST(GraphView, TensorsShareTheModelsMemory) {
  const std::string text = [] {
    onnx::ModelProto p = parse<onnx::ModelProto>(kText);
    auto* t = p.mutable_graph()->mutable_initializer(0);
    t->clear_float_data();
    t->set_dims(0, 100000);
    t->set_raw_data(std::string(400000, '\1'));
    p.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->clear_shape();
    p.mutable_graph()->mutable_output(0)->mutable_type()->mutable_tensor_type()->clear_shape();
    return p.SerializeAsString();
  }();
  const Model m = load_model_bytes(text, "", everything());
  const GraphView v = view_model(m, everything());
  const json j = json::parse(v.json);
  ASSERT_EQ(j["main"]["constants"].size(), 2u);
  const json& w = j["main"]["constants"][0];
  EXPECT_EQ(w["name"], "w");
  EXPECT_TRUE(w["initializer"]);
  EXPECT_EQ(v.tensors[w["tensor"]].data(), m.initializer("w")->data());
  const json& c = j["main"]["constants"][1];
  EXPECT_FALSE(c["initializer"]);  // of a Constant node
  EXPECT_EQ(v.tensors[c["tensor"]].as<float>()[0], 3.0f);
}

TEST(GraphView, ValuesSetSinceLoadingAreThere) {
  Model m = parse_model(kText, everything());
  m.set_initializer("w", Tensor::vector<float>({7, 8}));
  const GraphView v = view_model(m, everything());
  const json constants = json::parse(v.json)["main"]["constants"];
  EXPECT_EQ(v.tensors[constants[0]["tensor"]].as<float>()[1], 8.0f);
}

TEST(GraphView, MetadataOfNodesAndTextsOfAnyBytes) {
  onnx::ModelProto p = parse<onnx::ModelProto>(kText);
  auto* kv = p.mutable_graph()->mutable_node(1)->add_metadata_props();
  kv->set_key("scope");
  kv->set_value("block.0");
  auto* a = p.mutable_graph()->mutable_node(0)->add_attribute();
  a->set_name("note");
  a->set_type(onnx::AttributeProto::STRING);
  a->set_s("\xff\xfe");
  p.mutable_graph()->mutable_node(0)->set_domain("");
  p.mutable_graph()->mutable_node(0)->set_op_type("Abs");
  LoadOptions o;
  o.check = false;
  const GraphView v =
      view_model(load_model_bytes(p.SerializeAsString(), "", everything(), o), everything());
  const json nodes = json::parse(v.json)["main"]["nodes"];
  EXPECT_EQ(nodes[1]["metadata"]["scope"], "block.0");
  ASSERT_TRUE(nodes[0]["attributes"]["note"].contains("text"));
  EXPECT_EQ(v.tensors[nodes[0]["attributes"]["note"]["text"]].as<std::string>()[0], "\xff\xfe");
}

}  // namespace
}  // namespace onnxtrain
