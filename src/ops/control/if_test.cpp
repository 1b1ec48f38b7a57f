// If: values, gradients, inlining of known conditions.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_case.hpp"
#include "tests/support/text_case.hpp"

namespace onnxtrain::testing {

namespace {

const char* kIf = R"(
  g (double[3] x, double[3] w, bool c) => (double[3] y) {
    y = If (c) <then_branch = t () => (double[3] a) { p = Mul(x, w) a = Mul(p, x) },
                else_branch = e () => (double[3] b) { b = Sin(x) }>
  })";

}  // namespace

TEST(If, ValuesAndGradient) {
  Feeds f = {{"x", vary({3}, 1)}, {"w", vary({3}, 2)}, {"c", flag(true)}};
  check_text_grad(kIf, f, {"x", "w"});
  f["c"] = flag(false);
  check_text_grad(kIf, f, {"x", "w"});
}

TEST(If, KnownConditionIsInlined) {
  auto m = text_model(R"(
    g (float[3] x) => (float[3] y)
    <bool c = {1}> {
      y = If (c) <then_branch = t () => (float[3] a) { a = Add(x, x) }, else_branch = e () => (float[3] b) { b = Sin(x) }>
    })");
  Session s(m);
  Feeds f = {{"x", random_tensor({3})}};
  for (const Node& n : s.plan_for(f).graph.nodes) EXPECT_FALSE(n.is("If"));
  EXPECT_FALSE(s.plan_for(f).has_dynamic);
}

TEST(If, Values) {
  Feeds f = {{"x", doubles({1, 2, 3})}, {"w", doubles({2, 2, 2})}, {"c", flag(true)}};
  EXPECT_EQ(text_output(kIf, f), (std::vector<double>{2, 8, 18}));
  f["c"] = flag(false);
  EXPECT_EQ(text_output(kIf, f),
            (std::vector<double>{std::sin(1.0), std::sin(2.0), std::sin(3.0)}));
}

TEST(ControlFlow, ResultsOfKnownTypeStayStatic) {
  struct {
    std::string graph;
    Feeds feeds;
  } cases[] = {{std::string(kIf)
                    .replace(std::string(kIf).find("double[3] y)"), 12, "double[3] z)")
                    .replace(std::string(kIf).rfind('}'), 1, "z = Cos(y) }"),
                {{"x", vary({3}, 1)}, {"w", vary({3}, 2)}, {"c", flag(true)}}},
               {R"(g (int64 n, double[3] x) => (double[3] z) {
            y = Loop (n, , x) <body = b (int64 i, bool ci, double[3] s) => (bool co, double[3] t) { co = Identity(ci) t = Sin(s) }>
            z = Cos(y)
          })",
                {{"n", number(2)}, {"x", vary({3}, 1)}}},
               {R"(g (double[2] h, double[4,2] x) => (double[4,2] z) {
            l, y = Scan <num_scan_inputs = 1, body = b (double[2] s, double[2] a) => (double[2] t, double[2] u) {
              t = Add(s, a) u = Identity(t) }> (h, x)
            z = Cos(y)
          })",
                {{"h", vary({2}, 1)}, {"x", vary({4, 2}, 2)}}}};
  for (auto& c : cases) {
    Session s(text_model(c.graph));
    Plan& plan = s.plan_for(c.feeds);
    int found = 0;
    for (const Step& step : plan.steps)
      if (plan.graph.nodes[size_t(step.node)].is("Cos")) {
        EXPECT_FALSE(step.dynamic) << c.graph;
        ++found;
      }
    EXPECT_EQ(found, 1);
    EXPECT_GT(std::get<Tensor>(s.run(c.feeds)[0].second).size(), 0);
  }
}

}  // namespace onnxtrain::testing
