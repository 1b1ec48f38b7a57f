// GEMMs that take over transposes, factors, bias, residual and activations: which nodes are
// left, and the same numbers as without the pass.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/program.hpp"
#include "passes/passes.hpp"
#include "tests/support/graph_case.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

namespace {

struct Maker {
  Graph g;
  std::vector<Tensor> feeds;
  ValueId input(const Shape& s) {
    std::string name = cat("x", g.inputs.size());
    ValueId v = g.add_value(name, TypeInfo::tensor(DType::kFloat, s));
    g.inputs.push_back(v);
    feeds.push_back(random_tensor(s, -1, 1, feeds.size() + 1));
    return v;
  }
  ValueId number(float c) { return g.add_constant(Tensor::scalar(c)); }
  ValueId call(const std::string& op, std::vector<ValueId> in, Attrs attrs = {},
               std::string domain = "") {
    return add_call(g, op, std::move(in), std::move(attrs), std::move(domain));
  }
  ValueId turn(ValueId x, std::vector<int64_t> perm) {
    return call("Transpose", {x}, {{"perm", std::move(perm)}});
  }
  ValueId own(const std::string& op, std::vector<ValueId> in) {
    return call(op, std::move(in), {}, std::string(kOwnDomain));
  }
};

std::string ops_after(const Maker& m) {
  Graph g = m.g.clone();
  pass_fuse_matmul(g, PassContext{{}, all_ops()});
  g.renumber();
  g.verify("fuse_matmul");
  std::string s;
  for (const Node& n : g.nodes) s += n.op + " ";
  return s;
}

std::vector<Tensor> run(const Maker& m, std::vector<std::string> skip, int threads = 2) {
  ProgramOptions o;
  o.skip_passes = std::move(skip);
  Program p(m.g.clone(), {}, std::make_shared<State>(), std::make_shared<ThreadPool>(threads), o);
  std::vector<Tensor> out;
  for (const Value& v : p.run(std::vector<Value>(m.feeds.begin(), m.feeds.end()), 1, 1))
    out.push_back(std::get<Tensor>(v));
  return out;
}

void check(Maker& m, std::vector<ValueId> outputs, const std::string& ops) {
  m.g.outputs = std::move(outputs);
  EXPECT_EQ(ops_after(m), ops);
  std::vector<Tensor> a = run(m, {}), b = run(m, {"fuse_matmul"}), c = run(m, {}, 1);
  ASSERT_EQ(a.size(), b.size());
  for (size_t k = 0; k < a.size(); ++k) {
    ASSERT_EQ(a[k].shape(), b[k].shape());
    for (int64_t i = 0; i < a[k].size(); ++i) {
      float want = b[k].as<float>()[i];
      ASSERT_NEAR(a[k].as<float>()[i], want, 2e-5 * (1 + std::fabs(want))) << k << " " << i;
      ASSERT_EQ(a[k].as<float>()[i], c[k].as<float>()[i]);
    }
  }
}

TEST(FuseMatmul, HeadsOfAttention) {
  Maker m;
  ValueId q = m.input({2, 5, 3, 4}), k = m.input({2, 7, 3, 4}), v = m.input({2, 7, 3, 4});
  ValueId s = m.call("MatMul", {m.call("Mul", {m.turn(q, {0, 2, 1, 3}), m.number(0.5f)}),
                                m.turn(k, {0, 2, 3, 1})});
  ValueId p = m.call("Softmax", {m.call("Div", {s, m.number(3.0f)})});
  ValueId y = m.turn(m.call("MatMul", {p, m.turn(v, {0, 2, 1, 3})}), {0, 2, 1, 3});
  check(m, {y}, "StridedMatMul Softmax StridedMatMul ");
}

TEST(FuseMatmul, TransposedResultSwapsOperands) {
  Maker m;
  ValueId a = m.input({6, 5}), b = m.input({6, 9});
  ValueId w = m.turn(m.call("Gemm", {a, b}, {{"transA", int64_t(1)}}), {1, 0});
  ValueId x = m.input({2, 3, 4, 5}), z = m.input({2, 3, 5, 7});
  ValueId t = m.turn(m.call("MatMul", {x, z}), {0, 3, 1, 2});
  check(m, {w, t}, "StridedMatMul StridedMatMul ");
}

TEST(FuseMatmul, BiasResidualAndActivation) {
  Maker m;
  ValueId x = m.input({2, 3, 16}), w = m.input({20, 16}), b = m.input({20}),
          r = m.input({2, 3, 20});
  ValueId h = m.call("Add", {b, m.call("MatMul", {x, m.turn(w, {1, 0})})});
  ValueId y = m.call("Relu", {m.call("Add", {h, r})});
  check(m, {y}, "StridedMatMul ");
}

TEST(FuseMatmul, ActivationKeepsItsArgument) {
  Maker m;
  ValueId x = m.input({33, 16}), w = m.input({16, 40}), b = m.input({40}), w2 = m.input({12, 40});
  ValueId pre = m.call("Add", {m.call("MatMul", {x, w}), b});
  ValueId y = m.call("Gelu", {pre});
  ValueId dy = m.call("MatMul", {m.input({33, 12}), w2});
  ValueId dx = m.own("GeluGrad", {dy, pre});
  check(m, {y, dx}, "StridedMatMul StridedMatMul ");
}

// Those that StridedMatMul has, by the records of the operators; Softplus is none of them.
TEST(FuseMatmul, EveryActivationOfAGemm) {
  for (const char* op : {"Relu", "Gelu", "Sigmoid", "Tanh"}) {
    Maker m;
    check(m, {m.call(op, {m.call("MatMul", {m.input({4, 6}), m.input({6, 8})})})},
          "StridedMatMul ");
  }
  Maker tanh;
  const ValueId h = tanh.call("MatMul", {tanh.input({4, 6}), tanh.input({6, 8})});
  check(tanh, {tanh.call("Gelu", {h}, {{"approximate", std::string("tanh")}})}, "StridedMatMul ");
  for (const char* op : {"ReluGrad", "GeluGrad", "SigmoidGrad"}) {
    Maker m;
    const ValueId dy = m.call("MatMul", {m.input({4, 6}), m.input({6, 8})});
    check(m, {m.own(op, {dy, m.input({4, 8})})}, "StridedMatMul ");
  }
  Maker other;
  check(
      other,
      {other.call("Softplus", {other.call("MatMul", {other.input({4, 6}), other.input({6, 8})})})},
      "MatMul Softplus ");
}

TEST(FuseMatmul, BothOperandsAreOneValue) {
  Maker m;
  ValueId t = m.turn(m.input({5, 5}), {1, 0});
  ValueId s = m.call("Mul", {m.input({3, 4, 4}), m.number(2)});
  check(m, {m.call("MatMul", {t, t}), m.call("MatMul", {s, s})}, "StridedMatMul StridedMatMul ");
}

TEST(FuseMatmul, LeavesWhatOthersRead) {
  Maker m;
  ValueId x = m.input({4, 6}), w = m.input({6, 8}), b = m.input({8});
  ValueId h = m.call("MatMul", {x, w});
  ValueId y = m.call("Add", {h, b});
  ValueId z = m.call("Neg", {h});
  check(m, {y, z}, "MatMul Add Neg ");
  // the last dimension of neither side is contiguous
  Maker n;
  ValueId a = n.input({3, 4, 5}), c = n.input({3, 4});
  ValueId p = n.call("MatMul", {n.turn(a, {2, 0, 1}), n.turn(c, {1, 0})});
  check(n, {p}, "Transpose StridedMatMul ");
}

TEST(Recognise, GeluInEveryOrder) {
  for (int order = 0; order < 4; ++order) {
    Maker m;
    ValueId x = m.input({5, 9});
    ValueId u = order % 2 ? m.call("Div", {x, m.number(1.41421356f)})
                          : m.call("Mul", {m.number(0.70710678f), x});
    ValueId a = m.call("Add", {m.call("Erf", {u}), m.number(1)});
    ValueId y = order < 2    ? m.call("Mul", {m.call("Mul", {x, a}), m.number(0.5f)})
                : order == 2 ? m.call("Mul", {m.call("Mul", {x, m.number(0.5f)}), a})
                             : m.call("Mul", {x, m.call("Mul", {a, m.number(0.5f)})});
    m.g.outputs = {y};
    Graph g = m.g.clone();
    recognise_operators(g, {});
    ASSERT_EQ(g.nodes.size(), 1u) << order;
    EXPECT_EQ(g.nodes[0].op, "Gelu");
    std::vector<Tensor> with = run(m, {}), without = run(m, {"recognise"});
    for (int64_t i = 0; i < with[0].size(); ++i)
      EXPECT_NEAR(with[0].as<float>()[i], without[0].as<float>()[i], 2e-6);
  }
  Maker m;  // another number: another function
  ValueId x = m.input({5, 9});
  ValueId a = m.call("Add", {m.call("Erf", {m.call("Div", {x, m.number(1.5f)})}), m.number(1)});
  m.g.outputs = {m.call("Mul", {m.call("Mul", {x, a}), m.number(0.5f)})};
  recognise_operators(m.g, {});
  EXPECT_EQ(m.g.nodes.size(), 5u);
}

}  // namespace
using Perm = std::vector<int64_t>;

TEST(Recognise, OneSliceOfATranspose) {
  for (int64_t axis : {1, 0, -1}) {
    for (Perm perm : {Perm{1, 0, 2}, Perm{0, 1, 2}, Perm{2, 0, 1}, Perm{}}) {
      Maker m;
      ValueId x = m.input({3, 4, 5});
      ValueId turned = perm.empty() ? m.call("Transpose", {x}) : m.turn(x, perm);
      ValueId last = m.g.add_constant(Tensor::scalar<int64_t>(-1));
      m.g.outputs.push_back(m.call("Gather", {turned, last}, {{"axis", axis}}));
      // what is left of the permutation without the axis decides
      if (perm.empty()) perm = {2, 1, 0};
      perm.erase(perm.begin() + (axis + 3) % 3);
      bool gone = std::is_sorted(perm.begin(), perm.end());
      Graph g = m.g.clone();
      recognise_operators(g, {});
      EXPECT_EQ(g.nodes.size(), gone ? 1u : 2u);
      EXPECT_EQ(run(m, {})[0].to_doubles(), run(m, {"recognise"})[0].to_doubles());
    }
  }
}

}  // namespace onnxtrain::testing
