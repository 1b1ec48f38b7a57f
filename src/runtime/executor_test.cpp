// The run loop: dynamic nodes, errors that name their node, handed-out memory; state variables.
#include "runtime/executor.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "engine/program.hpp"
#include "runtime/state.hpp"
#include "tests/support/op_case.hpp"
#include "tests/support/text_case.hpp"

namespace onnxtrain::testing {

namespace {

Program dynamic_program(std::string_view text) {
  return Program(text_graph(text), {}, std::make_shared<State>(), std::make_shared<ThreadPool>(2),
                 {});
}

constexpr const char* kNonZero = R"(
  g (float[N] x) => (float[M,1] y, float[N] z) {
    at = NonZero(x)
    turned = Transpose(at)
    y = Cast<to = 1>(turned)
    z = Neg(x)
  })";

// Counts what it is told.
struct Counter final : StepObserver {
  int begun = 0, done = 0, dynamic = 0;
  void before(const Plan&, const Step& s) override {
    ++begun;
    dynamic += s.dynamic;
  }
  void after(const Plan&, const Step&) override { ++done; }
};

}  // namespace

TEST(Executor, ShapesThatDependOnData) {
  Program p = dynamic_program(kNonZero);
  for (const std::vector<float>& x :
       {std::vector<float>{0, 1, 2}, std::vector<float>{0, 0, 0}, std::vector<float>{1, 1, 1}}) {
    std::vector<Value> r = p.run({Tensor::vector<float>(x)}, 0, 0);
    std::vector<double> want;
    for (size_t i = 0; i < x.size(); ++i)
      if (x[i] != 0) want.push_back(double(i));
    EXPECT_EQ(std::get<Tensor>(r[0]).to_doubles(), want);
    EXPECT_EQ(std::get<Tensor>(r[0]).shape(), (Shape{int64_t(want.size()), 1}));
    EXPECT_EQ(std::get<Tensor>(r[1]).size(), 3);
  }
  EXPECT_EQ(p.plans().size(), 1u);  // one plan serves all of them
  EXPECT_TRUE(p.plans()[0]->has_dynamic);
}

TEST(Executor, ObserversSeeEveryStep) {
  Program p = dynamic_program(kNonZero);
  Counter c;
  p.set_observer(&c);
  p.run({Tensor::vector<float>({0, 1, 2})}, 0, 0);
  EXPECT_EQ(c.begun, 4);
  EXPECT_EQ(c.done, 4);
  EXPECT_EQ(c.dynamic, 3);
  p.set_observer(nullptr);
  p.run({Tensor::vector<float>({0, 1, 2})}, 0, 0);
  EXPECT_EQ(c.begun, 4);
}

TEST(Executor, AnErrorInARunNamesTheNode) {
  Graph g = text_graph("g (float[3] x, int64[1] i) => (float[1] y) { y = Gather(x, i) }");
  g.nodes[0].name = "pick";
  Program p(std::move(g), {}, std::make_shared<State>(), std::make_shared<ThreadPool>(1), {});
  EXPECT_THROW(p.run({random_tensor({3}), Tensor::vector<int64_t>({7})}, 0, 0), Error);
  // the program still runs
  std::vector<Value> r =
      p.run({Tensor::vector<float>({5, 6, 7}), Tensor::vector<int64_t>({1})}, 0, 0);
  EXPECT_EQ(std::get<Tensor>(r[0]).to_doubles(), std::vector<double>{6});
}

TEST(Executor, MemoryThatWasGivenUpServesAgain) {
  Program p = dynamic_program("g (float[N] x) => (float[N] y) { y = Neg(x) }");
  const void* first = nullptr;
  {
    std::vector<Value> r = p.run({random_tensor({100})}, 0, 0);
    first = std::get<Tensor>(r[0]).data();
  }
  std::vector<Value> second = p.run({random_tensor({100})}, 0, 0);
  EXPECT_EQ(std::get<Tensor>(second[0]).data(), first);
  std::vector<Value> third = p.run({random_tensor({100})}, 0, 0);
  EXPECT_NE(std::get<Tensor>(third[0]).data(), first);  // the second is still held
}

TEST(Executor, OnlyWantedOutputs) {
  Program p = dynamic_program(kNonZero);
  std::vector<Value> r = p.run({Tensor::vector<float>({0, 1})}, 0, 0, {0, 1});
  EXPECT_TRUE(std::holds_alternative<Tensor>(r[1]));
  const Tensor* unwanted = std::get_if<Tensor>(&r[0]);
  EXPECT_TRUE(!unwanted || !unwanted->defined());
}

TEST(State, AddressesStayAndTypesMustMatch) {
  State s;
  s.set("w", Tensor::vector<float>({1, 2}));
  const void* where = s.get("w").data();
  s.set("w", Tensor::vector<float>({3, 4}));
  EXPECT_EQ(s.get("w").data(), where);
  EXPECT_EQ(s.get("w").to_doubles(), (std::vector<double>{3, 4}));
  EXPECT_THROW(s.set("w", Tensor::vector<float>({1, 2, 3})), Error);
  EXPECT_THROW(s.set("w", Tensor::vector<double>({1, 2})), Error);
  EXPECT_EQ(s.get("w").to_doubles(), (std::vector<double>{3, 4}));
  s.set("a", Tensor::scalar<int64_t>(7));
  EXPECT_EQ(s.names(), (std::vector<std::string>{"w", "a"}));  // in order of creation
  EXPECT_EQ(s.bytes(), 16u);
  EXPECT_TRUE(s.has("a"));
  EXPECT_FALSE(s.has("b"));
}

}  // namespace onnxtrain::testing
