// The pass runner: the list, leaving passes out, times.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"
#include "tests/support/text_case.hpp"

namespace onnxtrain::testing {

namespace {
constexpr const char* kTwice = R"(
  g (float[2] x) => (float[2] y) {
    i = Identity(x)
    a = Exp(i)
    b = Exp(x)
    d = Sin(x)
    y = Add(a, b)
  })";
}  // namespace

TEST(Pipeline, NamesAndTimesEveryPass) {
  Graph g = text_graph(kTwice);
  std::vector<PassTime> times = run_passes(g, {}, all_ops(), {{"fuse_elementwise"}, true});
  EXPECT_EQ(nodes_text(g), "a = Exp(x)\ny = Add(a, a)\n");
  ASSERT_GT(times.size(), 10u);
  EXPECT_EQ(times[0].name, "partition");
  for (size_t k = 0; k < times.size(); ++k) {
    EXPECT_GE(times[k].seconds, 0);
    EXPECT_NE(times[k].name, "fuse_elementwise");
    EXPECT_EQ(times[k].nodes_before, k ? times[k - 1].nodes_after : 5);
  }
  EXPECT_EQ(times.back().nodes_after, 2);
}

TEST(Pipeline, WhatIsSkippedDoesNotRun) {
  Graph g = text_graph(kTwice);
  run_passes(g, {}, all_ops(), {{"cse", "fuse_elementwise"}, true});
  EXPECT_EQ(nodes_text(g), "a = Exp(x)\nb = Exp(x)\ny = Add(a, b)\n");
}

// What a profile shows of a plan: the engine's stages and every pass.
TEST(Pipeline, TimesReachThePlan) {
  Session s(text_model(kTwice));
  const Plan& plan = s.plan_for({{"x", random_tensor({2})}});
  std::string names;
  for (const Plan::Stage& stage : plan.stages) names += stage.name + " ";
  EXPECT_EQ(names.find(
                "specialise open_sequences recognise gradients absorb_constants partition identity "
                "cse dead "),
            0u)
      << names;
  EXPECT_EQ(plan.stages.back().name, "plan");
  EXPECT_EQ(plan.stages.front().nodes_before, 4);  // what nothing needs is gone before
  EXPECT_EQ(plan.stages.back().nodes_after, int(plan.graph.nodes.size()));
}

}  // namespace onnxtrain::testing
