// The layout pass and the fusions around it: text in, text out, and the same numbers.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/program.hpp"
#include "op/channels_last.hpp"
#include "passes/passes.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

namespace {

using Attrs = Attributes;

struct Maker {
  Graph g;
  ValueId input(const char* name, const Shape& s) {
    ValueId v = g.add_value(name, TypeInfo::tensor(DType::kFloat, s));
    g.inputs.push_back(v);
    return v;
  }
  ValueId constant(const Shape& s, double low = -1, double high = 1) {
    return g.add_constant(random_tensor(s, low, high, ++seed));
  }
  std::vector<ValueId> call_n(const char* op, std::vector<ValueId> in, int outputs, Attrs attrs,
                              const std::string& domain = {}) {
    Node n;
    n.op = op;
    n.domain = domain;
    n.version = domain.empty() ? 15 : 1;
    n.inputs = std::move(in);
    n.attrs = std::move(attrs);
    std::vector<ValueId> v = g.add_node(std::move(n), outputs);
    g.nodes.back().name = g.value_name(v[0]);
    infer_node(g, g.nodes.back(), all_ops());
    return v;
  }
  ValueId call(const char* op, std::vector<ValueId> in, Attrs attrs = {}) {
    return call_n(op, std::move(in), 1, std::move(attrs))[0];
  }
  ValueId conv(ValueId x, int64_t in, int64_t out, int64_t kernel = 3) {
    int64_t pad = kernel / 2;
    return call("Conv", {x, constant({out, in, kernel, kernel})},
                {{"pads", std::vector<int64_t>{pad, pad, pad, pad}}});
  }
  std::vector<ValueId> norm(ValueId x, int64_t channels, bool train) {
    return call_n("BatchNormalization",
                  {x, constant({channels}), constant({channels}), constant({channels}),
                   constant({channels}, 0.5, 2)},
                  train ? 3 : 1, {{"training_mode", int64_t(train)}});
  }
  uint64_t seed = 10;
};

// Operators in order; "*" marks those that were turned.
std::string ops_after(Graph g, const std::vector<std::string>& passes = {"layout"}) {
  std::vector<ValueId> keep;
  PassContext c{keep, all_ops()};
  for (const auto& p : passes) {
    if (p == "fold_norm") pass_fold_norm(g, c);
    if (p == "layout") pass_layout(g, c);
    if (p == "fuse_norm") pass_fuse_norm(g, c);
    g.renumber();
    g.verify(p.c_str());
  }
  std::string s;
  for (const Node& n : g.nodes) s += n.op + (is_channels_last(n) ? "* " : " ");
  return s;
}

std::vector<Tensor> run(const Graph& g, const std::vector<Tensor>& feeds,
                        std::vector<std::string> skip, int threads = 2) {
  ProgramOptions o;
  o.skip_passes = std::move(skip);
  o.verify_passes = true;
  Program p(g, {}, std::make_shared<State>(), std::make_shared<ThreadPool>(threads), o);
  std::vector<Tensor> out;
  for (const Value& v : p.run(std::vector<Value>(feeds.begin(), feeds.end()), 1, 1))
    out.push_back(std::get<Tensor>(v));
  return out;
}

// With all passes and without those of this file; the same bits for any thread count.
void same_numbers(const Graph& g, const std::vector<Tensor>& feeds, double tolerance = 2e-5) {
  std::vector<Tensor> a = run(g, feeds, {}),
                      b = run(g, feeds, {"layout", "fuse_norm", "fold_norm", "fuse_elementwise"}),
                      c = run(g, feeds, {}, 1);
  ASSERT_EQ(a.size(), b.size());
  for (size_t k = 0; k < a.size(); ++k) {
    ASSERT_EQ(a[k].shape(), b[k].shape());
    std::vector<double> x = a[k].to_doubles(), y = b[k].to_doubles(), z = c[k].to_doubles();
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_NEAR(x[i], y[i], tolerance * (1 + std::fabs(y[i]))) << "output " << k << " at " << i;
      ASSERT_EQ(x[i], z[i]) << "output " << k << " at " << i;
    }
  }
}

}  // namespace

TEST(Layout, TurnsWhatStandsBetweenConvolutions) {
  Maker m;
  ValueId x = m.input("x", {2, 3, 9, 8});
  ValueId a = m.call("Relu", {m.conv(x, 3, 10)});
  ValueId scaled = m.call("Mul", {a, m.constant({10, 1, 1})});  // broadcasts along the channels
  ValueId p = m.call(
      "MaxPool", {scaled},
      {{"kernel_shape", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}});
  ValueId y = m.call("Add", {m.conv(p, 10, 10), p});
  m.g.outputs = {m.call("Flatten", {m.call("GlobalAveragePool", {y})}), m.call("Exp", {x})};
  EXPECT_EQ(ops_after(m.g),
            "Transpose Conv* Relu Reshape Reshape Mul MaxPool* Conv* Add GlobalAveragePool* "
            "Reshape Flatten Exp ");
  same_numbers(m.g, {random_tensor({2, 3, 9, 8})});
}

TEST(Layout, LeavesGraphsWithoutConvolutionsAlone) {
  Maker m;
  ValueId x = m.input("x", {2, 3, 4, 4});
  m.g.outputs = {m.call("Relu", {m.norm(x, 3, false)[0]})};
  EXPECT_EQ(ops_after(m.g), "BatchNormalization Relu ");
}

TEST(Layout, ValuesThatAreShownStayInOnnxOrder) {
  Maker m;
  ValueId x = m.input("x", {1, 4, 5, 5});
  ValueId a = m.conv(x, 4, 6), b = m.call("Sigmoid", {a});
  ValueId rows = m.call("Softmax", {b}, {{"axis", int64_t(3)}});  // must see rows
  m.g.outputs = {a, rows, m.conv(b, 6, 4)};
  EXPECT_EQ(ops_after(m.g), "Transpose Conv* Transpose Sigmoid Transpose Softmax Conv* Transpose ");
  same_numbers(m.g, {random_tensor({1, 4, 5, 5})});
}

TEST(Layout, OneAndThreeDimensions) {
  for (Shape s : {Shape{2, 5, 11}, Shape{1, 4, 3, 5, 4}}) {
    Maker m;
    ValueId x = m.input("x", s);
    Shape w{6, s[1]};
    for (size_t d = 2; d < s.size(); ++d) w.push_back(2);
    ValueId y = m.call("Conv", {x, m.constant(w), m.constant({6})});
    m.g.outputs = {m.call("AveragePool", {m.call("Tanh", {y})},
                          {{"kernel_shape", std::vector<int64_t>(s.size() - 2, 2)}})};
    EXPECT_EQ(ops_after(m.g), "Transpose Conv* Tanh AveragePool* Transpose ");
    same_numbers(m.g, {random_tensor(s)});
  }
}

TEST(Layout, FewLargeImagesAreCutByRows) {
  Maker m;
  ValueId x = m.input("x", {1, 16, 64, 48});
  ValueId a = m.call("Conv", {x, m.constant({16, 16, 3, 3}), m.constant({16})},
                     {{"pads", std::vector<int64_t>{2, 1, 1, 2}},
                      {"strides", std::vector<int64_t>{2, 1}},
                      {"dilations", std::vector<int64_t>{2, 1}}});
  m.g.outputs = {m.conv(a, 16, 24, 5), a};
  same_numbers(m.g, {random_tensor({1, 16, 64, 48})}, 1e-4);
}

TEST(FoldNorm, IntoConstantWeights) {
  Maker m;
  ValueId x = m.input("x", {2, 4, 7, 7});
  ValueId a = m.norm(m.conv(x, 4, 6), 6, false)[0];
  ValueId b = m.conv(m.call("Relu", {a}), 6, 6);
  m.g.outputs = {m.norm(b, 6, false)[0], b};  // b is shown: it stays
  EXPECT_EQ(ops_after(m.g, {"fold_norm"}), "Conv Relu Conv BatchNormalization ");
  same_numbers(m.g, {random_tensor({2, 4, 7, 7})}, 1e-4);
}

TEST(FuseNorm, ForwardAndBackward) {
  for (const char* act : {"Relu", "Clip", "Add", "none"}) {
    Maker m;
    Shape s{3, 8, 6, 5};
    ValueId x = m.input("x", s), dy = m.input("dy", s), r = m.input("r", s);
    ValueId scale = m.constant({8}), zero = m.g.add_constant(Tensor::scalar<float>(0)),
            half = m.g.add_constant(Tensor::scalar<float>(0.5f));
    ValueId c = m.conv(x, 8, 8);
    std::vector<ValueId> n = m.call_n(
        "BatchNormalization", {c, scale, m.constant({8}), m.constant({8}), m.constant({8}, 0.5, 2)},
        3, {{"training_mode", int64_t(1)}});
    std::string own(kOwnDomain), kind(act);
    ValueId y = n[0], dz = dy;
    if (kind == "Clip") {
      y = m.call("Clip", {n[0], zero, half});
      dz = m.call_n("ClipGrad", {dy, n[0], zero, half}, 1, {}, own)[0];
    } else if (kind != "none") {
      ValueId sum = kind == "Add" ? m.call("Add", {r, n[0]}) : n[0];
      y = m.call("Relu", {sum});
      dz = m.call_n("ReluGrad", {dy, y}, 1, {}, own)[0];
    }
    std::vector<ValueId> g = m.call_n("BatchNormalizationGrad", {dz, c, scale}, 3,
                                      {{"epsilon", 1e-5f}, {"per_element", int64_t(0)}}, own);
    m.g.outputs = {m.conv(y, 8, 8), n[1], n[2], g[1], g[2], m.conv(g[0], 8, 8)};
    if (kind == "Add") m.g.outputs.push_back(m.conv(dz, 8, 8));
    std::string after = ops_after(m.g, {"layout", "fuse_norm"});
    EXPECT_NE(after.find("FusedBatchNorm* "), std::string::npos) << after;
    EXPECT_NE(after.find("FusedBatchNormGrad* "), std::string::npos) << after;
    for (const char* gone : {"Relu", "Clip", "Add", "BatchNormalization"})
      EXPECT_EQ(after.find(gone), std::string::npos) << act << ": " << after;
    same_numbers(m.g, {random_tensor(s), random_tensor(s, -1, 1, 2), random_tensor(s, -1, 1, 3)},
                 1e-3);
  }
}

}  // namespace onnxtrain::testing
