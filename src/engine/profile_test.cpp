// Profiles: the kernel that ran, the refusals of faster ones, passes and their times.
#include "engine/profile.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/session.hpp"
#include "kernels/conv/conv_general.hpp"
#include "tests/support/op_case.hpp"
#include "tests/support/text_case.hpp"

namespace onnxtrain::testing {

namespace {

// The node of this operator in a profiled run.
NodeProfile profiled(std::string_view graph, const Feeds& feeds, const std::string& op,
                     std::vector<std::string> skip = {}) {
  ProgramOptions o;
  o.skip_passes = std::move(skip);
  Session s(text_model(graph), o);
  Profiler p;
  s.set_observer(&p);
  s.run(feeds);
  NodeProfile found;
  for (const NodeProfile& n : p.nodes())
    if (n.op == op) found = n;
  EXPECT_EQ(found.op, op);
  EXPECT_EQ(found.calls, 1);
  return found;
}

bool refused(const NodeProfile& n, const std::string& why) {
  return std::any_of(n.refused.begin(), n.refused.end(),
                     [&](const std::string& r) { return r.find(why) == 0; });
}

}  // namespace

// An implementation that finds nothing for the problem refuses; no other loop runs in its name.
TEST(Profile, NamesTheKernelThatRan) {
  NodeProfile n = profiled(
      "g (float[1,2,9,9] x, float[3,2,3,3] w) => (float[1,3,7,7] y) "
      "{ y = Conv(x, w) }",
      {{"x", random_tensor({1, 2, 9, 9})}, {"w", random_tensor({3, 2, 3, 3})}}, "Conv", {"layout"});
  EXPECT_EQ(n.impl, general::kConvName);
  EXPECT_TRUE(refused(n, "winograd: channels are not last"));
  // four spatial dimensions: only the definition
  n = profiled(
      "g (float[1,1,3,3,3,3] x, float[1,1,2,2,2,2] w) => (float[1,1,2,2,2,2] y) "
      "{ y = Conv(x, w) }",
      {{"x", random_tensor({1, 1, 3, 3, 3, 3})}, {"w", random_tensor({1, 1, 2, 2, 2, 2})}}, "Conv");
  EXPECT_EQ(n.impl, "ref");
  EXPECT_TRUE(refused(n, cat(general::kConvName, ": more than 3 spatial dimensions")));
  // strides larger than windows: columns that no window reaches
  for (bool layout : {true, false}) {
    n = profiled(
        "g (float[1,8,4,4] x, float[8,8,1,1] w) => (float[1,8,12,12] y) "
        "{ y = ConvTranspose<auto_pad = \"SAME_UPPER\", strides = [3, 3]>(x, w) }",
        {{"x", random_tensor({1, 8, 4, 4})}, {"w", random_tensor({8, 8, 1, 1})}}, "ConvTranspose",
        layout ? std::vector<std::string>{} : std::vector<std::string>{"layout"});
    EXPECT_EQ(n.impl, "ref");
    EXPECT_TRUE(refused(n, cat(general::kConvName, ": no window reaches the first columns")));
  }
}

TEST(Profile, NamesKernelsOfDynamicNodes) {
  Feeds f = {{"x", Tensor::vector<float>({1, 0, 2})}};
  const char* g = R"(
    g (float[3] x) => (int64[1,M] y) {
      z = NonZero(x)
      y = Add(z, z)
    })";
  NodeProfile n = profiled(g, f, "Add");
  EXPECT_EQ(n.impl, "ref");
  EXPECT_EQ(n.shapes, "dynamic");
  EXPECT_TRUE(refused(n, "simd: input 0 is int64"));
  f["c"] = flag(true);
  n = profiled(
      "g (float[3] x, bool c) => (float[3] y) { y = If (c) "
      "<then_branch = t () => (float[3] a) { a = Neg(x) }, "
      "else_branch = e () => (float[3] b) { b = Exp(x) }> }",
      f, "If");
  EXPECT_EQ(n.impl, "values");
}

// A maker that finds nothing while making: the next implementation is asked.
TEST(Profile, MakersMayRefuse) {
  Op op;
  op.name = "Twice";
  op.impls = {{"never", [](const Prepare&) { return std::string("not today"); },
               [](Prepare&) -> Kernel { return {}; }},
              {"late", nullptr, [](Prepare& p) { return p.refuse("found nothing"); }},
              {"plain", nullptr, [](Prepare& p) -> Kernel {
                 p.workspace = 64;
                 return [](const onnxtrain::Run& r) { *r.out<float>(0) = 2 * *r.in<float>(0); };
               }}};
  Node node;
  node.outputs = {1};
  ThreadPool pool(1);
  TensorType one{DType::kFloat, {}};
  Prepare p(node, {one}, {one}, {nullptr}, pool);
  Choice c = choose_kernel(op, p);
  EXPECT_STREQ(c.impl, "plain");
  EXPECT_EQ(c.workspace, 64u);
  EXPECT_EQ(c.refused, (std::vector<std::string>{"never: not today", "late: found nothing"}));
  op.impls.pop_back();
  EXPECT_THROW(choose_kernel(op, p), Error);
}

TEST(Profile, PassesReachTheTrace) {
  Session s(text_model("g (float[3] x) => (float[3] y) { y = Exp(x) }"));
  Profiler p(100);
  s.set_observer(&p);
  Feeds f = {{"x", random_tensor({3})}};
  s.run(f);
  s.run(f);
  std::vector<Plan::Stage> stages = p.stages();
  auto named = [&](const char* name) {
    return std::count_if(stages.begin(), stages.end(),
                         [&](const Plan::Stage& stage) { return stage.name == name; });
  };
  EXPECT_EQ(named("cse"), 1);
  EXPECT_EQ(named("plan"), 1);
  std::string trace = p.chrome_trace();
  EXPECT_NE(trace.find("\"cat\":\"prepare\",\"name\":\"cse\""), std::string::npos) << trace;
  EXPECT_NE(trace.find("\"impl\":\"simd\""), std::string::npos) << trace;
}

TEST(Profile, PhasesOfAStep) {
  // y is shown, w is updated from what is neither
  StateProgram p(
      "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> "
      "{ y = Sin(x) b = Softmax(y) next = Mul(w, b) }");
  std::string phases;
  for (const NodeProfile& n : describe_nodes(p.program->plan_for({random_tensor({2})})))
    phases += n.op + " " + phase_name(n.phase) + "; ";
  EXPECT_EQ(phases, "Sin forward; Softmax backward; Mul update; ");
}

}  // namespace onnxtrain::testing
