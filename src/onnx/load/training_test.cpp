// Training sections: how they are read, and a broken file for every rule.
#include "onnx/testing.hpp"

namespace onnxtrain {
namespace {

using namespace testing_onnx;

TEST(OnnxTraining, StepIsReadAsPartialGraph) {
  const Model m = load(training_model());
  ASSERT_EQ(m.training.size(), 1u);
  const Graph& a = m.training[0].algorithm;
  std::set<std::string> captured;
  for (const auto& c : a.captures) {
    EXPECT_EQ(m.main.value_name(c.outer), a.value_name(c.inner));
    captured.insert(a.value_name(c.inner));
  }
  EXPECT_EQ(captured, (std::set<std::string>{"w", "x", "y"}));
  EXPECT_EQ(to_string(a.value(a.find("g")).type), "float[2,3]");  // Gradient has no rule: type of x
  EXPECT_EQ(to_string(a.value(a.find("loss")).type), "float[]");
  EXPECT_EQ(m.main.value(m.main.find("w")).state, "w");
  EXPECT_EQ(a.value(a.find("n")).state, "n");
  EXPECT_EQ(m.training[0].initialization.outputs.size(), 1u);
  EXPECT_EQ(m.state_names(), (std::vector<std::string>{"w", "n"}));
}

TEST(OnnxTraining, GraphCallOfOnnx17IsInlined) {
  auto m = parse<onnx::ModelProto>(R"(
    <ir_version: 7, opset_import: ["" : 12, "ai.onnx.preview.training" : 1]>
    main (float[2] x) => (float[2] y) <float[2] w = {1,2}> { h = Mul(x, w)  y = Tanh(h) })");
  add_step(m, R"(step (float[2] batch) => (float[2] w_new) {
      p = ai.onnx.preview.training.GraphCall<graph_name="main">(batch)
      g = ai.onnx.preview.training.Gradient<xs=["w"], zs=["batch"], y="p">(w, batch)
      w_new = Sub(w, g)
    })");
  bind_update(m, 0, "w", "w_new");
  const Model read = load(m);
  const Graph& a = read.training[0].algorithm;
  a.verify("inlining");
  std::vector<std::string> ops;
  for (const Node& n : a.nodes) ops.push_back(n.op);
  EXPECT_EQ(ops, (std::vector<std::string>{"Mul", "Tanh", "Gradient", "Sub"}));
  EXPECT_EQ(a.captures.size(), 1u);  // w only: x is replaced by batch
  EXPECT_EQ(differences(m,
                        [&] {
                          onnx::ModelProto q;
                          q.ParseFromString(serialize_model(read, primitives()));
                          return q;
                        }()),
            "");
}

// Applies `damage` and expects a finding with this code and rule.
template <class F>
void expect_rule(const char* code, const char* rule, F&& damage,
                 Finding::Level level = Finding::Level::kError) {
  auto m = training_model();
  damage(m);
  const auto findings = check_model_bytes(m.SerializeAsString(), "", primitives());
  bool found = false;
  std::string all;
  for (const Finding& f : findings) {
    all += cat(f.code, " ", f.rule, " ", f.message, "\n");
    if (f.code == code && f.rule == rule && f.level == level) found = true;
  }
  EXPECT_TRUE(found) << rule << ", got:\n" << all;
  if (level == Finding::Level::kError)
    EXPECT_NE(load_error(m), "") << rule;
  else
    EXPECT_EQ(load_error(m), "") << rule;
}

onnx::GraphProto& algorithm(onnx::ModelProto& m) {
  return *m.mutable_training_info(0)->mutable_algorithm();
}
onnx::NodeProto& gradient(onnx::ModelProto& m) { return *algorithm(m).mutable_node(3); }

TEST(OnnxTraining, GoodFileHasNoFindings) {
  const auto findings = check_model_bytes(training_model().SerializeAsString(), "", primitives());
  for (const Finding& f : findings) ADD_FAILURE() << f.code << " " << f.message;
}

TEST(OnnxTraining, RulesOnTheFile) {
  expect_rule("OT1301", "C1", [](auto& m) { m.set_ir_version(6); });
  expect_rule("OT1302", "C2", [](auto& m) { m.mutable_opset_import()->RemoveLast(); });
  expect_rule("OT1303", "C3", [](auto& m) { algorithm(m).mutable_node(0)->set_output(0, "y"); });
  expect_rule("OT1303", "C3", [](auto& m) { algorithm(m).mutable_node(0)->set_input(0, "gone"); });
  expect_rule("OT1044", "",
              [](auto& m) { m.mutable_graph()->mutable_node(0)->set_input(0, "t"); });  // C4
  expect_rule("OT1305", "C5", [](auto& m) {
    auto* i = m.mutable_training_info(0)->mutable_initialization()->add_input();
    *i = m.graph().input(0);
  });
  expect_rule("OT1305", "C5", [](auto& m) {
    auto* n = m.mutable_training_info(0)->mutable_initialization()->add_node();
    n->set_op_type("Relu");
    n->add_input("w");
    n->add_output("z");
  });
}

TEST(OnnxTraining, RulesOnBindings) {
  expect_rule("OT1306", "C6", [](auto& m) { m.mutable_training_info(0)->clear_initialization(); });
  expect_rule("OT1307", "C7", [](auto& m) { bind_update(m, 0, "x", "w_new"); });
  expect_rule("OT1308", "C8", [](auto& m) {
    m.mutable_training_info(0)->mutable_initialization_binding(0)->set_value("w1");
  });
  expect_rule("OT1309", "C9", [](auto& m) {
    m.mutable_training_info(0)->mutable_update_binding(0)->set_value("s");
  });
  expect_rule("OT1310", "C10", [](auto& m) { bind_update(m, 0, "w", "w_new"); });
  expect_rule(
      "OT1311", "G1",
      [](auto& m) {
        add_step(m, "again () => (float[2,3] w2) { w2 = Neg(w) }");
        bind_update(m, 1, "w", "w2");
      },
      Finding::Level::kWarning);
  expect_rule("OT1312", "C12", [](auto& m) {
    m.mutable_training_info(0)->mutable_update_binding(0)->set_value("loss");
  });
  expect_rule("OT1321", "G4", [](auto& m) {
    add_step(m, "again () => (float r) <int64 n = {1}> { r = Cast<to=1>(n) }");
  });
  expect_rule("OT1320", "C20", [](auto& m) {
    auto* t = m.mutable_graph()->add_sparse_initializer();
    t->add_dims(4);
    t->mutable_values()->set_name("sp");
    t->mutable_values()->set_data_type(1);
    t->mutable_values()->add_dims(1);
    t->mutable_values()->add_float_data(1);
    t->mutable_indices()->set_data_type(7);
    t->mutable_indices()->add_dims(1);
    t->mutable_indices()->add_int64_data(1);
    bind_update(m, 0, "sp", "w_new");
  });
}

TEST(OnnxTraining, RulesOnGradientAndOptimizers) {
  expect_rule("OT1313", "C13", [](auto& m) { gradient(m).mutable_input()->RemoveLast(); });
  expect_rule("OT1314", "C14", [](auto& m) { gradient(m).add_output("extra"); });
  expect_rule("OT1315", "C15", [](auto& m) { gradient(m).mutable_attribute(2)->set_s("s"); });
  expect_rule("OT1316", "C16", [](auto& m) {
    gradient(m).mutable_attribute(1)->add_strings("y");
    gradient(m).add_input("y");
  });
  expect_rule(
      "OT1316", "C16",
      [](auto& m) {
        gradient(m).mutable_attribute(1)->mutable_strings()->RemoveLast();
        gradient(m).mutable_input()->RemoveLast();
      },
      Finding::Level::kWarning);
  expect_rule("OT1317", "C17", [](auto& m) {
    gradient(m).mutable_attribute(0)->add_strings("n");
    gradient(m).mutable_input()->Add("n");
    gradient(m).mutable_input()->SwapElements(1, 3);
  });
  expect_rule("OT1318", "C18", [](auto& m) {
    auto* n = algorithm(m).add_node();
    n->set_op_type("Adam");
    n->set_domain(std::string(kTrainingDomain));
    for (const char* i : {"rate", "n", "w", "g"}) n->add_input(i);
    n->add_output("w_adam");
  });
  expect_rule("OT1319", "C19", [](auto& m) { gradient(m).set_op_type("Gradients"); });
}

}  // namespace
}  // namespace onnxtrain
