// The pass that joins element-wise nodes: text in, text out, and the same numbers.
#include <gtest/gtest.h>

#include "engine/program.hpp"
#include "passes/passes.hpp"
#include "tests/support/graph_case.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

namespace {

// Builds graphs node by node.
struct Maker {
  Graph g;
  ValueId input(const char* name, const Shape& s, DType t = DType::kFloat) {
    ValueId v = g.add_value(name, TypeInfo::tensor(t, s));
    g.inputs.push_back(v);
    return v;
  }
  ValueId call(const char* op, std::vector<ValueId> in, Attrs attrs = {}) {
    return add_call(g, op, std::move(in), std::move(attrs));
  }
};

std::string ops_after(Graph g) {
  pass_fuse_elementwise(g, PassContext{{}, all_ops()});
  g.renumber();
  g.verify("fuse_elementwise");
  std::string s;
  for (const Node& n : g.nodes) s += n.op + "(" + std::to_string(n.inputs.size()) + ") ";
  return s;
}

std::vector<Tensor> run(const Graph& g, const std::vector<Tensor>& feeds,
                        std::vector<std::string> skip) {
  ProgramOptions o;
  o.skip_passes = std::move(skip);
  Program p(g, {}, std::make_shared<State>(), std::make_shared<ThreadPool>(2), o);
  std::vector<Tensor> out;
  for (const Value& v : p.run(std::vector<Value>(feeds.begin(), feeds.end()), 1, 1))
    out.push_back(std::get<Tensor>(v));
  return out;
}

// Fused and unfused runs give the same bits.
void same_numbers(const Graph& g, const std::vector<Tensor>& feeds) {
  std::vector<Tensor> a = run(g, feeds, {}), b = run(g, feeds, {"fuse_elementwise"});
  ASSERT_EQ(a.size(), b.size());
  for (size_t k = 0; k < a.size(); ++k) {
    ASSERT_EQ(a[k].shape(), b[k].shape());
    ASSERT_EQ(a[k].dtype(), b[k].dtype());
    std::vector<double> x = a[k].to_doubles(), y = b[k].to_doubles();
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(x[i], y[i]) << "output " << k << " element " << i;
  }
}

}  // namespace

TEST(FuseElementwise, ChainWithBroadcast) {
  for (Shape s : {Shape{4, 7}, Shape{3, 5, 300}, Shape{2, 2000}}) {
    Maker m;
    ValueId x = m.input("x", s), b = m.input("b", {s.back()}),
            c = m.g.add_constant(Tensor::scalar<float>(0.5f));
    ValueId r = m.input("r", {s[0] == 3 ? int64_t(5) : s[0], 1});
    ValueId y = m.call("Mul", {m.call("Tanh", {m.call("Add", {m.call("Mul", {x, c}), b})}), r});
    m.g.outputs = {m.call("Div", {m.call("Exp", {y}), x})};
    EXPECT_EQ(ops_after(m.g), "FusedElementwise(4) ");
    same_numbers(m.g, {random_tensor(s, 0.5, 2), random_tensor({s.back()}, -1, 1, 2),
                       random_tensor(m.g.value(r).type.concrete_shape(), -1, 1, 3)});
  }
}

TEST(FuseElementwise, MasksAndCast) {
  Maker m;
  ValueId x = m.input("x", {50, 30}), y = m.input("y", {50, 30}),
          k = m.input("k", {30}, DType::kBool);
  ValueId less = m.call("Less", {x, y});
  ValueId w = m.call("Where", {m.call("And", {less, k}), x, m.call("Neg", {y})});
  ValueId count = m.call("Cast", {m.call("Greater", {x, y})}, {{"to", int64_t(1)}});
  m.g.outputs = {m.call("Add", {w, count}), m.call("Not", {m.call("Equal", {x, w})})};
  // w is read twice outside of one chain, so it stays
  EXPECT_EQ(ops_after(m.g), "FusedElementwise(3) FusedElementwise(3) FusedElementwise(2) ");
  Tensor mask(DType::kBool, {30});
  for (int i = 0; i < 30; ++i) mask.as<bool>()[i] = i % 3 == 0;
  same_numbers(m.g, {random_tensor({50, 30}), random_tensor({50, 30}, -1, 1, 2), mask});
}

TEST(FuseElementwise, StepsWithAttributes) {
  Maker m;
  ValueId x = m.input("x", {33, 70}), b = m.input("b", {33, 1});
  ValueId y = m.call("LeakyRelu", {m.call("Add", {x, b})}, {{"alpha", 0.25f}});
  m.g.outputs = {m.call("Sigmoid", {m.call("Relu", {m.call("Sub", {y, b})})})};
  EXPECT_EQ(ops_after(m.g), "FusedElementwise(2) ");
  same_numbers(m.g, {random_tensor({33, 70}), random_tensor({33, 1}, -1, 1, 2)});
}

TEST(FuseElementwise, LeavesAlone) {
  Maker m;
  ValueId x = m.input("x", {4, 4}), d = m.input("d", {4, 4}, DType::kDouble),
          s = m.input("s", {1, 4});
  ValueId small = m.call("Exp", {s});         // smaller than the result
  ValueId shown = m.call("Mul", {x, small});  // an output itself
  m.g.outputs = {shown, m.call("Neg", {shown}), m.call("Neg", {m.call("Exp", {d})})};
  EXPECT_EQ(ops_after(m.g), "Exp(1) Mul(2) Neg(1) Exp(1) Neg(1) ");
}

}  // namespace onnxtrain::testing
