// Files of other writers: nodes in any order, dimensions that are no sizes.
#include "onnx/message/normalise.hpp"

#include <gtest/gtest.h>

#include "onnx/testing.hpp"

namespace onnxtrain {
namespace {

std::vector<std::string> order(const onnx::GraphProto& g) {
  std::vector<std::string> out;
  for (const auto& n : g.node()) out.push_back(n.output(0));
  return out;
}

onnx::ModelProto normalised(const char* text) {
  auto m = parse<onnx::ModelProto>(text);
  normalise(m);
  return m;
}

TEST(Normalise, SortsStably) {
  const auto m = normalised(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x) => (y, c) { c = Relu(x) y = Add(b, c) b = Neg(a) a = Exp(x) d = Abs(x) })");
  EXPECT_EQ(order(m.graph()), (std::vector<std::string>{"c", "a", "b", "y", "d"}));
}

TEST(Normalise, KeepsAnOrderThatWorks) {
  const auto m = normalised(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x) => (y) { z = Neg(x) a = Exp(x) y = Add(z, a) })");
  EXPECT_EQ(order(m.graph()), (std::vector<std::string>{"z", "a", "y"}));
}

TEST(Normalise, CapturesOfSubgraphsCount) {
  const auto m = normalised(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x, bool c) => (y) {
      y = If (c) <then_branch = t () => (p) { p = Neg(q) q = Exp(late) },
                  else_branch = e () => (r) { r = Identity(x) }>
      late = Relu(x)
    })");
  EXPECT_EQ(order(m.graph()), (std::vector<std::string>{"late", "y"}));
  EXPECT_EQ(order(m.graph().node(1).attribute(0).g()), (std::vector<std::string>{"q", "p"}));
}

TEST(Normalise, ACycleIsLeftBehindTheRest) {
  const auto m = normalised(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x) => (y) { y = Add(b, d) b = Relu(y) d = Neg(e) e = Exp(x) })");
  EXPECT_EQ(order(m.graph()), (std::vector<std::string>{"e", "d", "y", "b"}));
  EXPECT_EQ(load_error(m), "OT1110");
}

TEST(Normalise, DimensionsBelowOneAreUnknown) {
  auto m = parse<onnx::ModelProto>(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[1,2,3] x) => (float[1,2,3] y) <float[1,2,3] a> { a = Relu(x) y = Neg(a) })");
  auto spoil = [](onnx::ValueInfoProto* v) {
    auto* shape = v->mutable_type()->mutable_tensor_type()->mutable_shape();
    shape->mutable_dim(0)->set_dim_value(-1);
    shape->mutable_dim(1)->set_dim_value(0);
  };
  spoil(m.mutable_graph()->mutable_input(0));
  spoil(m.mutable_graph()->mutable_output(0));
  spoil(m.mutable_graph()->mutable_value_info(0));
  normalise(m);
  for (const auto* v : {&m.graph().input(0), &m.graph().output(0), &m.graph().value_info(0)}) {
    const auto& shape = v->type().tensor_type().shape();
    EXPECT_FALSE(shape.dim(0).has_dim_value()) << v->name();
    EXPECT_FALSE(shape.dim(1).has_dim_value()) << v->name();
    EXPECT_EQ(shape.dim(2).dim_value(), 3) << v->name();
  }
}

TEST(Normalise, FilesInAnyOrderLoad) {
  EXPECT_EQ(load_error(parse<onnx::ModelProto>(R"(<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x) => (y) { y = Relu(b) b = Relu(x) })")),
            "");
}

}  // namespace
}  // namespace onnxtrain
