// If, Loop, Scan, SequenceMap and sequences: values, and gradients against finite differences.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/gradients.hpp"
#include "engine/session.hpp"
#include "onnx/onnx.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

namespace {

std::shared_ptr<Model> model(const std::string& graph) {
  return std::make_shared<Model>(
      parse_model("<ir_version: 10, opset_import: [\"\" : 21]>\n" + graph, all_ops()));
}

Tensor doubles(const std::vector<double>& v, Shape s = {}) {
  Tensor t = Tensor::vector<double>(v);
  return s.empty() ? t : t.reshaped(s);
}
Tensor vary(const Shape& s, uint64_t seed) { return random_tensor(s, -1, 1, seed, DType::kDouble); }
Tensor flag(bool b) { return Tensor::scalar<bool>(b); }
Tensor number(int64_t n) { return Tensor::scalar<int64_t>(n); }

std::vector<double> output(const std::shared_ptr<Model>& m, const Feeds& f, size_t k = 0) {
  return std::get<Tensor>(Session(m).run(f)[k].second).to_doubles();
}

// d sum(all floating-point outputs) / d wrt against central differences.
void check(const std::string& graph, Feeds feeds, const std::vector<std::string>& wrt) {
  std::shared_ptr<Model> m = model(graph);
  GradientRequest r;
  r.wrt = wrt;
  std::vector<NamedValue> grads = gradients(*m, feeds, r);
  auto total = [&] {
    double sum = 0;
    for (const auto& [name, v] : Session(m).run(feeds))
      if (const Tensor* t = std::get_if<Tensor>(&v); t && t->dtype() == DType::kDouble)
        for (double d : t->to_doubles()) sum += d;
    return sum;
  };
  for (size_t k = 0; k < wrt.size(); ++k) {
    const Tensor& g = std::get<Tensor>(grads[k].second);
    Tensor x = std::get<Tensor>(feeds[wrt[k]]).clone();
    feeds[wrt[k]] = x;
    ASSERT_EQ(g.shape(), x.shape()) << wrt[k];
    for (int64_t i = 0; i < x.size(); ++i) {
      double keep = x.as<double>()[i], eps = 1e-5;
      x.as<double>()[i] = keep + eps;
      double up = total();
      x.as<double>()[i] = keep - eps;
      double down = total();
      x.as<double>()[i] = keep;
      EXPECT_NEAR(g.as<double>()[i], (up - down) / (2 * eps), 1e-6)
          << "d/d " << wrt[k] << "[" << i << "]";
    }
  }
}

const char* kIf = R"(
  g (double[3] x, double[3] w, bool c) => (double[3] y) {
    y = If (c) <then_branch = t () => (double[3] a) { p = Mul(x, w) a = Mul(p, x) },
                else_branch = e () => (double[3] b) { b = Sin(x) }>
  })";

const char* kLoop = R"(
  g (int64 n, double[3] x, double[3] w) => (double[3] last, double[K,3] all) {
    last, all = Loop (n, , x) <body = b (int64 i, bool ci, double[3] s) => (bool co, double[3] t, double[3] u) {
      co = Identity(ci)
      p = Mul(s, w)
      t = Sin(p)
      u = Mul(t, s)
    }>
  })";

}  // namespace

TEST(If, ValuesAndGradient) {
  Feeds f = {{"x", vary({3}, 1)}, {"w", vary({3}, 2)}, {"c", flag(true)}};
  check(kIf, f, {"x", "w"});
  f["c"] = flag(false);
  check(kIf, f, {"x", "w"});
}

TEST(If, KnownConditionIsInlined) {
  auto m = model(R"(
    g (float[3] x) => (float[3] y)
    <bool c = {1}> {
      y = If (c) <then_branch = t () => (float[3] a) { a = Add(x, x) }, else_branch = e () => (float[3] b) { b = Sin(x) }>
    })");
  Session s(m);
  Feeds f = {{"x", random_tensor({3})}};
  for (const Node& n : s.plan_for(f).graph.nodes) EXPECT_FALSE(n.is("If"));
  EXPECT_FALSE(s.plan_for(f).has_dynamic);
}

// What follows control flow whose results have known types is planned like everything else.
TEST(ControlFlow, ResultsOfKnownTypeStayStatic) {
  struct {
    std::string graph;
    Feeds feeds;
  } cases[] = {{std::string(kIf)
                    .replace(std::string(kIf).find("double[3] y)"), 12, "double[3] z)")
                    .replace(std::string(kIf).rfind("}"), 1, "z = Cos(y) }"),
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
    Session s(model(c.graph));
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

TEST(Loop, ValuesAndGradient) {
  Feeds f = {{"n", number(3)}, {"x", vary({3}, 1)}, {"w", vary({3}, 2)}};
  check(kLoop, f, {"x", "w"});
  f["n"] = number(0);
  check(kLoop, f, {"x", "w"});
  EXPECT_EQ(std::get<Tensor>(Session(model(kLoop)).run(f)[1].second).shape(), (Shape{0, 3}));
}

TEST(Loop, ConditionEndsIt) {
  const char* g = R"(
    g (double[2] x) => (double[2] y, double[K,2] all)
    <double limit = {5.0}, bool go = {1}> {
      y, all = Loop (, go, x) <body = b (int64 i, bool ci, double[2] s) => (bool co, double[2] t, double[2] u) {
        t = Mul(s, x)
        u = Identity(s)
        total = ReduceSum<keepdims = 0>(t)
        co = Less(total, limit)
      }>
    })";
  check(g, {{"x", doubles({1.3, 1.1})}}, {"x"});
}

TEST(Loop, GrowingStateAndNesting) {
  const char* g = R"(
    g (int64 n, double[L] x, double[1] w) => (double[M] y) {
      y = Loop (n, , x) <body = b (int64 i, bool ci, double[P] s) => (bool co, double[Q] t) {
        co = Identity(ci)
        one = Constant<value_int = 1>()
        first = Less(i, one)
        v = If (first) <then_branch = tt () => (double[R] a) { a = Mul(s, w) },
                        else_branch = ee () => (double[R] b2) { b2 = Sin(s) }>
        t = Concat<axis = 0>(v, w)
      }>
    })";
  check(g, {{"n", number(3)}, {"x", vary({2}, 1)}, {"w", vary({1}, 2)}}, {"x", "w"});
}

TEST(Loop, InLoop) {
  const char* g = R"(
    g (int64 n, double[2] x, double[2] w) => (double[2] y) {
      y = Loop (n, , x) <body = b (int64 i, bool ci, double[2] s) => (bool co, double[2] t) {
        co = Identity(ci)
        t = Loop (n, , s) <body = b2 (int64 j, bool cj, double[2] p) => (bool ck, double[2] q) {
          ck = Identity(cj)
          r = Mul(p, w)
          q = Add(r, x)
        }>
      }>
    })";
  check(g, {{"n", number(2)}, {"x", vary({2}, 1)}, {"w", vary({2}, 2)}}, {"x", "w"});
}

TEST(Loop, EndlessIsRefused) {
  auto m = model(R"(
    g (float[1] x) => (float[1] y) {
      y = Loop (, , x) <body = b (int64 i, bool ci, float[1] s) => (bool co, float[1] t) { co = Identity(ci) t = Add(s, s) }>
    })");
  EXPECT_THROW(Session(m).run({{"x", random_tensor({1})}}), Error);
}

TEST(Loop, RandomNumbersDifferByIterationAndReturnInTheGradient) {
  const char* g = R"(
    g (int64 n, double[4] x) => (double[4] y, double[K,4] all) {
      y, all = Loop (n, , x) <body = b (int64 i, bool ci, double[4] s) => (bool co, double[4] t, double[4] r) {
        co = Identity(ci)
        r = RandomUniformLike(s)
        t = Mul(s, r)
      }>
    })";
  Feeds f = {{"n", number(3)}, {"x", vary({4}, 1)}};
  std::vector<double> all = output(model(g), f, 1);
  EXPECT_NE(all[0], all[4]);
  check(g, f, {"x"});
}

TEST(Scan, ValuesAndGradient) {
  const char* g = R"(
    g (double[2] h, double[3,2] x, double[2,3] z, double[2] w) => (double[2] last, double[3,2] all, double[2,3] other) {
      last, all, other = Scan <num_scan_inputs = 2, scan_input_axes = [0, 1], scan_input_directions = [0, 1],
                               scan_output_axes = [0, 1], scan_output_directions = [1, 0],
        body = b (double[2] s, double[2] a, double[2] c) => (double[2] t, double[2] u, double[2] v) {
          p = Mul(s, w)
          q = Add(p, a)
          t = Sin(q)
          u = Mul(t, c)
          v = Mul(a, c)
        }> (h, x, z)
    })";
  Feeds f = {
      {"h", vary({2}, 1)}, {"x", vary({3, 2}, 2)}, {"z", vary({2, 3}, 3)}, {"w", vary({2}, 4)}};
  check(g, f, {"h", "x", "z", "w"});
}

TEST(Scan, Version8HasABatch) {
  auto m = std::make_shared<Model>(parse_model(R"(<ir_version: 3, opset_import: ["" : 8]>
    g (float[2,1] h, float[2,3,1] x) => (float[2,1] last, float[2,3,1] all) {
      last, all = Scan <num_scan_inputs = 1,
        body = b (float[1] s, float[1] a) => (float[1] t, float[1] u) { t = Add(s, a) u = Identity(t) }> (, h, x)
    })",
                                               all_ops()));
  Tensor h = Tensor::vector<float>({0, 10}).reshaped({2, 1}),
         x = Tensor::vector<float>({1, 2, 3, 4, 5, 6}).reshaped({2, 3, 1});
  EXPECT_EQ(output(m, {{"h", h}, {"x", x}}, 1), (std::vector<double>{1, 3, 6, 14, 19, 25}));
  EXPECT_EQ(output(m, {{"h", h}, {"x", x}}, 0), (std::vector<double>{6, 25}));
}

TEST(Sequences, GradientThroughAllOperators) {
  const char* g = R"(
    g (double[2] x, double[2] y, double[4] z) => (double[M] out, double[2] one) {
      s0 = SequenceConstruct(x, y)
      parts = SplitToSequence<axis = 0>(z, two)
      first = SequenceAt(parts, minus_one)
      s1 = SequenceInsert(s0, first, one_i)
      s2 = SequenceErase(s1, minus_three)
      s3 = SequenceMap (s2) <body = b (double[2] item) => (double[2] r) { q = Mul(item, x) r = Sin(q) }>
      out = ConcatFromSequence<axis = 0>(s3)
      one = SequenceAt(s3, zero)
    })";
  std::string text = g;
  text.replace(text.find("=> (double[M] out, double[2] one) {"), 35,
               "=> (double[M] out, double[2] one) <int64 two = {2}, int64 minus_one = {-1}, int64 "
               "minus_three = {-3}, "
               "int64 one_i = {1}, int64 zero = {0}> {");
  check(text, {{"x", vary({2}, 1)}, {"y", vary({2}, 2)}, {"z", vary({4}, 3)}}, {"x", "y", "z"});
}

TEST(Sequences, AsLoopState) {
  const char* g = R"(
    g (int64 n, double[2] x, double[2] w) => (double[K,2] out)
    {
      s0 = SequenceConstruct(x)
      s1 = Loop (n, , s0) <body = b (int64 i, bool ci, seq(double[2]) s) => (bool co, seq(double[2]) t) {
        co = Identity(ci)
        last = SequenceAt(s, i)
        v = Mul(last, w)
        t = SequenceInsert(s, v)
      }>
      out = ConcatFromSequence<axis = 0, new_axis = 1>(s1)
    })";
  check(g, {{"n", number(2)}, {"x", vary({2}, 1)}, {"w", vary({2}, 2)}}, {"x", "w"});
}

TEST(Optionals, Gradient) {
  const char* g = R"(
    g (double[2] x) => (double[2] y) {
      o = Optional(x)
      e = OptionalGetElement(o)
      y = Mul(e, e)
    })";
  check(g, {{"x", vary({2}, 1)}}, {"x"});
}

}  // namespace onnxtrain::testing
