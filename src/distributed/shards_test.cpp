// Which updates can be shared out among processes, and how.
#include "distributed/shards.hpp"

#include <gtest/gtest.h>

#include "infer/specialise.hpp"
#include "tests/support/op_case.hpp"
#include "tests/support/text_case.hpp"

namespace onnxtrain::testing {

namespace {

// An update: inputs g1, g2 are gradients, all other inputs are state variables; an output NAME_new
// is the new value of NAME.
struct Case {
  Graph g, types;
  SplitStep::Updates updates;
  State state;

  explicit Case(std::string_view text) : g(text_graph(text)) {
    std::vector<ValueId> gradients;
    for (ValueId v : g.inputs) {
      ValueDef& d = g.value(v);
      if (d.name.starts_with("g")) {
        gradients.push_back(v);
        continue;
      }
      d.constant = random_tensor(d.type.concrete_shape(), 0.1, 1, uint64_t(v) + 1);
      d.state = d.name;
      state.set(d.name, d.constant);
    }
    g.inputs = gradients;
    for (ValueId v : g.outputs) {
      const std::string& name = g.value_name(v);
      if (name.ends_with("_new")) updates.emplace_back(v, name.substr(0, name.size() - 4));
    }
    types = g.clone();
    ThreadPool pool(1);
    specialise(types, all_ops(), pool);
  }
  ShardPlan plan() const {
    return plan_shards(g, types, updates, {"g1", "g2"}, {"w1", "w2"}, all_ops());
  }
};

std::string variables(const ShardUnit& u) {
  std::string all;
  for (const auto& v : u.variables) all += cat(all.empty() ? "" : " ", v.name, v.slot ? "*" : "");
  return all;
}

constexpr const char* kMomentum = R"(
m (float[3,5] g1, float[3,5] w1, float[3,5] v1, float[7] g2, float[7] w2, float[7] v2, float r)
  => (float[3,5] w1_new, float[3,5] v1_new, float[7] w2_new, float[7] v2_new FACTOR_OUT)
{
  FACTOR
  d1 = Mul(v1, r)
  v1_new = Add(d1, c1)
  w1_new = Sub(w1, v1_new)
  d2 = Mul(v2, r)
  v2_new = Add(d2, c2)
  w2_new = Sub(w2, v2_new)
})";

std::string momentum(const std::string& factor, const std::string& out = {}) {
  std::string text = kMomentum;
  text.replace(text.find("FACTOR_OUT"), 10, out);
  return text.replace(text.find("FACTOR"), 6, factor);
}

}  // namespace

TEST(Shards, TensorsThatMeetFormAUnit) {
  const Case c(momentum("c1 = Identity(g1)\n  c2 = Identity(g2)"));
  const ShardPlan p = c.plan();
  ASSERT_EQ(p.units.size(), 2u);
  EXPECT_EQ(variables(p.units[0]), "w1 v1*");
  EXPECT_EQ(variables(p.units[1]), "w2 v2*");
  EXPECT_TRUE(p.units[0].by_element && p.units[1].by_element);
  EXPECT_FALSE(p.whole_gradients);
}

TEST(Shards, ANormOfAllGradientsNeedsThemWhole) {
  const Case c(momentum(R"(s1 = ReduceSumSquare<keepdims = 0>(g1)
  s2 = ReduceSumSquare<keepdims = 0>(g2)
  s = Add(s1, s2)
  c1 = Div(g1, s)
  c2 = Div(g2, s))"));
  const ShardPlan p = c.plan();
  ASSERT_EQ(p.units.size(), 2u);
  EXPECT_TRUE(p.units[0].by_element && p.units[1].by_element);
  EXPECT_TRUE(p.whole_gradients);
}

TEST(Shards, ANormOfEachTensorNeedsWholeTensors) {
  const Case c(momentum(R"(s1 = ReduceL2<keepdims = 0>(w1)
  c1 = Mul(g1, s1)
  c2 = Identity(g2))"));
  const ShardPlan p = c.plan();
  ASSERT_EQ(p.units.size(), 2u);
  EXPECT_FALSE(p.units[0].by_element);
  EXPECT_TRUE(p.units[1].by_element);
  EXPECT_FALSE(p.whole_gradients);
}

TEST(Shards, WhatEveryProcessNeedsStaysWhole) {
  // a number made of one variable goes into the other: v1 is kept, w1 depends on it only
  const Case c(momentum(R"(s1 = ReduceL2<keepdims = 0>(v1)
  c1 = Identity(g1)
  c2 = Mul(g2, s1))"));
  const ShardPlan p = c.plan();
  ASSERT_EQ(p.units.size(), 2u);
  EXPECT_EQ(variables(p.units[0]), "w1");
  EXPECT_EQ(variables(p.units[1]), "w2 v2*");
  ASSERT_EQ(p.kept.size(), 1u);
  EXPECT_TRUE(p.kept[0].starts_with("'v1': ")) << p.kept[0];
  EXPECT_TRUE(p.whole_gradients);
}

TEST(Shards, PiecesComputeWhatTheWholeDoes) {
  const Case c(momentum("c1 = Identity(g1)\n  c2 = Identity(g2)"));
  const ShardPlan p = c.plan();
  SplitStep::Updates updates = c.updates;
  Graph whole = c.g.clone();
  whole.outputs.clear();
  const Graph g =
      shard_graph(whole, c.types, updates, p, {{0, 4, 11}, {1, 0, -1}},
                  [&](const std::string& name) -> const Tensor& { return c.state.get(name); });
  std::set<std::string> names;
  for (const auto& [v, name] : updates) names.insert(name);
  EXPECT_EQ(names, (std::set<std::string>{"w1[4:11]", "v1[4:11]", "w2", "v2"}));
  std::set<std::string> inputs;
  for (ValueId v : g.inputs) inputs.insert(g.value_name(v));
  EXPECT_EQ(inputs, (std::set<std::string>{"g1[4:11]", "g2"}));
  EXPECT_EQ(g.damage(), "");
  const Tensor part = elements_of(c.state.get("v1"), 4, 11);
  EXPECT_EQ(part.shape(), (Shape{1, 7}));
  EXPECT_EQ(part.data(), c.state.get("v1").as<float>() + 4);
}

TEST(Shards, AnOptimizerOfSeveralTensorsFallsApart) {
  Graph g = text_graph(R"(
m (float r, int64 t, float[3] w1, float[5] w2, float[3] g1, float[5] g2, float[3] v1, float[5] v2)
  => (float[3] w1_new, float[5] w2_new, float[3] v1_new, float[5] v2_new)
{
  w1_new, w2_new, v1_new, v2_new = ai.onnx.preview.training.Momentum
    <alpha = 0.9, beta = 1.0, norm_coefficient = 0.0, mode = "standard">(r, t, w1, w2, g1, g2, v1, v2)
})");
  separate_updates(g, all_ops());
  ASSERT_EQ(g.nodes.size(), 2u);
  std::vector<std::string> names;
  for (ValueId v : g.nodes[1].inputs) names.push_back(g.value_name(v));
  EXPECT_EQ(names, (std::vector<std::string>{"r", "t", "w2", "g2", "v2"}));
  EXPECT_EQ(g.value_name(g.nodes[1].outputs[1]), "v2_new");
}

}  // namespace onnxtrain::testing
