// Reading graphs: names, subgraphs, functions, constants, types, old forms.
#include "onnx/testing.hpp"

namespace onnxtrain {
namespace {

using namespace testing_onnx;

const Node& node(const Graph& g, std::string_view op) {
  for (const Node& n : g.nodes)
    if (n.op == op) return n;
  throw std::runtime_error("no node " + std::string(op));
}
std::string type_of(const Graph& g, std::string_view name) {
  return to_string(g.value(g.find(name)).type);
}

TEST(OnnxReader, NodesVersionsAndTypes) {
  const Model m = parse_model(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[N,3,8,8] x, float[4,3,3,3] w) => (y) {
      c = Conv<pads=[1,1,1,1]>(x, w)
      r = Relu(c)
      s = Shape(x)
      i = Constant<value_ints=[0]>()
      n = Gather(s, i)
      k = Constant<value = int64[1] {-1}>()
      t = Concat<axis=0>(n, k)
      y = Reshape(r, t)
    })",
                              everything());
  m.main.verify("reading");
  EXPECT_EQ(node(m.main, "Conv").version, 17);
  EXPECT_EQ(node(m.main, "Conv").name, "Conv_0");
  EXPECT_EQ(type_of(m.main, "r"), "float[N,4,8,8]");
  EXPECT_EQ(type_of(m.main, "y"), "float[N,?]");  // needs data propagation through Shape
  EXPECT_EQ(m.main.value(m.main.find("i")).constant.to_ints(), std::vector<int64_t>{0});
  EXPECT_EQ(m.main.nodes.size(), 6u);  // Constants are values
}

TEST(OnnxReader, SubgraphsCaptureThroughLevels) {
  const Model m = parse_model(R"(
    <ir_version: 8, opset_import: ["" : 17]>
    g (bool c, float[2] x) => (y) <float[2] w = {1, 2}> {
      a = Add(x, w)
      y = If(c) <
        then_branch = t () => (float[2] p) { p = If(c) <
            then_branch = tt () => (float[2] q) { q = Mul(a, w) },
            else_branch = te () => (float[2] r) { r = Identity(x) }> },
        else_branch = e () => (float[2] a2) { a2 = Identity(a) }>
    })",
                              everything());
  m.main.verify("reading");
  const GraphPtr then_graph = node(m.main, "If").graph("then_branch");
  std::set<std::string> outer;
  for (const auto& c : then_graph->captures) outer.insert(m.main.value_name(c.outer));
  EXPECT_EQ(outer, (std::set<std::string>{"a", "c", "w", "x"}));
  const GraphPtr inner = node(*then_graph, "If").graph("then_branch");
  EXPECT_EQ(inner->captures.size(), 2u);
  EXPECT_EQ(to_string(inner->value(inner->outputs[0]).type), "float[2]");
}

TEST(OnnxReader, LocalFunctionsWithAttributesNestedAndInSubgraphs) {
  const Model m = parse_model(R"(
    <ir_version: 10, opset_import: ["" : 17, "my" : 1]>
    g (bool c, float[2] x) => (y, z) {
      y = my.twice<alpha = 0.5>(x)
      z = If(c) <then_branch = t () => (float[2] p) { p = my.twice(x) },
                 else_branch = e () => (float[2] q) { q = Identity(x) }>
    }
    <domain: "my", opset_import: ["" : 16, "my" : 1]>
    twice <alpha: float = 0.25> (a) => (b) { t = my.once<alpha: float = @alpha>(a)  b = my.once<alpha: float = @alpha>(t) }
    <domain: "my", opset_import: ["" : 16]>
    once <alpha> (a) => (b) { b = LeakyRelu<alpha: float = @alpha>(a) }
  )",
                              everything());
  m.main.verify("reading");
  ASSERT_EQ(m.main.nodes.size(), 3u);
  EXPECT_EQ(m.main.nodes[0].op, "LeakyRelu");
  EXPECT_EQ(m.main.nodes[0].version, 16);
  EXPECT_EQ(m.main.nodes[0].f("alpha", 0), 0.5f);
  EXPECT_EQ(m.main.value_name(m.main.nodes[1].outputs[0]), "y");
  const GraphPtr then_graph = m.main.nodes[2].graph("then_branch");
  ASSERT_EQ(then_graph->nodes.size(), 2u);
  EXPECT_EQ(then_graph->nodes[0].f("alpha", 0), 0.25f);  // the default
  EXPECT_EQ(then_graph->value_name(then_graph->outputs[0]), "p");
}

TEST(OnnxReader, StandardFunctionsExpandWithoutAKernel) {
  const char* text = R"(<ir_version: 10, opset_import: ["" : 20]>
    g (float[2,3] x) => (y) { y = Gelu(x) })";
  const Model expanded = parse_model(text, primitives());
  EXPECT_GT(expanded.main.nodes.size(), 3u);
  EXPECT_EQ(type_of(expanded.main, "y"), "float[2,3]");
  EXPECT_EQ(parse_model(text, everything()).main.nodes.size(), 1u);
}

TEST(OnnxReader, FunctionThatPassesAnInputThrough) {
  const Model m = parse_model(R"(<ir_version: 10, opset_import: ["" : 17, "my" : 1]>
    g (float[2] x) => (y) { y = my.same(x) }
    <domain: "my", opset_import: ["" : 17]> same (a) => (a) { t = Relu(a) })",
                              everything());
  m.main.verify("reading");
  EXPECT_EQ(node(m.main, "Identity").inputs[0], m.main.find("x"));
}

TEST(OnnxReader, AllUnknownOperatorsAtOnce) {
  const auto p = parse<onnx::ModelProto>(R"(<ir_version: 8, opset_import: ["" : 17, "x.y" : 3]>
    g (float[2] x) => (y) { a = x.y.Foo(x)  b = Bar(a)  y = x.y.Foo(b) })");
  LoadOptions o;
  o.check = false;
  try {
    load(p, everything(), o);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "OT1101");
    EXPECT_NE(e.message().find("x.y.Foo (opset 3) in 'Foo_0', 'Foo_1'"), std::string::npos)
        << e.message();
    EXPECT_NE(e.message().find("ai.onnx.Bar (opset 17)"), std::string::npos) << e.message();
  }
  EXPECT_EQ(load_error(p, everything()), "OT1101");
  o.keep_unknown = true;
  EXPECT_EQ(load(p, everything(), o).main.nodes.size(), 3u);
}

TEST(OnnxReader, RecursionAndExplosionAreRefused) {
  const auto recursive =
      parse<onnx::ModelProto>(R"(<ir_version: 10, opset_import: ["" : 17, "my" : 1]>
    g (float[2] x) => (y) { y = my.f(x) }
    <domain: "my", opset_import: ["my" : 1]> f (a) => (b) { b = my.f(a) })");
  EXPECT_EQ(load_error(recursive), "OT1042");
  // each function calls the next ten times: 10^12 nodes
  std::string text = R"(<ir_version: 10, opset_import: ["" : 17, "my" : 1]>
    g (float[2] x) => (y) { y = my.f0(x) })";
  for (int k = 0; k < 12; ++k) {
    text += cat("<domain: \"my\", opset_import: [\"\" : 17, \"my\" : 1]> f", k, " (x0) => (x10) {");
    for (int i = 0; i < 10; ++i)
      text += cat("x", i + 1, " = ", k < 11 ? cat("my.f", k + 1) : "Relu", "(x", i, ")\n");
    text += "}\n";
  }
  EXPECT_EQ(load_error(parse<onnx::ModelProto>(text)), "OT1003");
}

TEST(OnnxReader, BrokenStructure) {
  auto code = [](const char* body) {
    const std::string text =
        cat("<ir_version: 8, opset_import: [\"\" : 17]> g (float[2] x) => (y) {", body, "}");
    const auto p = parse<onnx::ModelProto>(text);
    std::string checked = load_error(p, everything());
    // the reader alone must find it too
    EXPECT_NE(load_error(p, everything(), false), "") << body;
    return checked;
  };
  EXPECT_EQ(code("y = Relu(nothing)"), "OT1044");
  EXPECT_EQ(code("y = Relu(b) b = Relu(y)"), "OT1110");
  EXPECT_EQ(code("b = Relu(x)"), "OT1045");
  EXPECT_EQ(code("y = Relu(x) y = Relu(x)"), "OT1043");
  EXPECT_EQ(code("y = MaxPool<kernel_shape=[2], strides=[0]>(x)"), "OT1052");
  EXPECT_EQ(code("y = Transpose<perm=[0,0]>(x)"), "OT1052");
}

TEST(OnnxReader, OldBroadcastingBecomesUnsqueeze) {
  const Model m = parse_model(R"(<ir_version: 3, opset_import: ["" : 6]>
    g (float[2,3,4,5] x, float[3] b) => (y) { y = Add<broadcast=1, axis=1>(x, b) })",
                              everything());
  m.main.verify("reading");
  ASSERT_EQ(m.main.nodes.size(), 2u);
  EXPECT_EQ(m.main.nodes[0].op, "Unsqueeze");
  EXPECT_EQ(m.main.nodes[0].ints("axes"), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(m.main.nodes[1].version, 7);
  EXPECT_TRUE(m.main.nodes[1].attrs.empty());
  EXPECT_EQ(type_of(m.main, "y"), "float[2,3,4,5]");
}

TEST(OnnxReader, VersionsOutOfRange) {
  EXPECT_EQ(load_error(parse<onnx::ModelProto>(
                "<ir_version: 8, opset_import: [\"\" : 29]> g (float x) => (y) { y = Relu(x) }")),
            "OT1021");
  EXPECT_EQ(load_error(parse<onnx::ModelProto>(
                "<ir_version: 15, opset_import: [\"\" : 17]> g (float x) => (y) { y = Relu(x) }")),
            "OT1020");
}

TEST(OnnxReader, TextIsParsed) {
  const Model m = parse_model(
      "<ir_version: 8, opset_import: [\"\" : 17]> g (float[2] x) => (float[2] y) { y = Relu(x) }",
      everything());
  ASSERT_EQ(m.main.nodes.size(), 1u);
  EXPECT_EQ(m.main.nodes[0].op, "Relu");
  EXPECT_THROW(parse_model("nonsense {", everything()), Error);
}

}  // namespace
}  // namespace onnxtrain
