// Programs: plans by shape, state and updates.
#include "engine/program.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_case.hpp"
#include "tests/support/text_case.hpp"

namespace onnxtrain::testing {

namespace {

Program program_of(std::string_view text, std::shared_ptr<State> state = std::make_shared<State>(),
                   std::vector<std::pair<ValueId, std::string>> updates = {}) {
  return Program(text_graph(text), std::move(updates), std::move(state),
                 std::make_shared<ThreadPool>(2), {});
}

std::vector<double> numbers(const Value& v) { return std::get<Tensor>(v).to_doubles(); }

constexpr const char* kSquare = "g (float[N] x) => (float[N] y) { y = Mul(x, x) }";

}  // namespace

TEST(Program, OnePlanForEveryShape) {
  Program p = program_of(kSquare);
  Plan* two = &p.plan_for({Tensor::vector<float>({1, 2})});
  Plan* three = &p.plan_for({Tensor::vector<float>({1, 2, 3})});
  EXPECT_NE(two, three);
  EXPECT_EQ(two, &p.plan_for({Tensor::vector<float>({7, 8})}));
  EXPECT_EQ(p.plans().size(), 2u);
  EXPECT_EQ(p.plans()[0], two);  // most recent first
  EXPECT_EQ(numbers(p.run({Tensor::vector<float>({1, 2, 3})}, 0, 0)[0]),
            (std::vector<double>{1, 4, 9}));
}

TEST(Program, OldPlansAreForgotten) {
  Program p = program_of(kSquare);
  for (int64_t n = 1; n <= 40; ++n) {
    std::vector<Value> y = p.run({random_tensor({n})}, 0, 0);
    EXPECT_EQ(std::get<Tensor>(y[0]).shape(), (Shape{n}));
  }
  EXPECT_LE(p.plans().size(), 16u);
  EXPECT_EQ(numbers(p.run({Tensor::vector<float>({3})}, 0, 0)[0]), std::vector<double>{9});
}

TEST(Program, RunAgainTakesOnlyTheSameTypes) {
  Program p = program_of(kSquare);
  std::vector<float> data = {2, 3};
  const int64_t two = 2, three = 3;
  ArrayRef a = {data.data(), &two, 1, DType::kFloat};
  EXPECT_EQ(p.run_again(&a, 0, 0), nullptr);  // no plan yet
  p.run({Tensor::vector<float>({0, 0})}, 0, 0);
  const Plan* plan = p.run_again(&a, 0, 0);
  ASSERT_NE(plan, nullptr);
  const auto* y = static_cast<const float*>(plan->slots[size_t(plan->graph.outputs[0])].address);
  EXPECT_EQ(y[0], 4);
  EXPECT_EQ(y[1], 9);
  a.dims = &three;
  EXPECT_EQ(p.run_again(&a, 0, 0), nullptr);
  a.dims = &two;
  a.dtype = DType::kDouble;
  EXPECT_EQ(p.run_again(&a, 0, 0), nullptr);
}

TEST(Program, UpdatesAreWrittenOnceTheRunIsOver) {
  StateProgram p(
      "g (float[2] x) => (float[2] seen) <float[2] w = {1, 2}> "
      "{ seen = Add(w, x) next = Mul(w, x) }");
  std::vector<Value> x = {Tensor::vector<float>({10, 100})};
  EXPECT_EQ(numbers(p.program->run(x, 0, 0)[0]), (std::vector<double>{11, 102}));  // the old value
  EXPECT_EQ(p.state->get("w").to_doubles(), (std::vector<double>{10, 200}));
  EXPECT_EQ(numbers(p.program->run(x, 0, 1)[0]), (std::vector<double>{20, 300}));
}

TEST(Program, AGuardStopsBeforeStateIsWritten) {
  StateProgram p(
      "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> "
      "{ y = Neg(x) a = Log(x) b = ReduceSum(a) next = Mul(w, b) }");
  Guard guard;
  std::vector<Value> zero = {Tensor::vector<float>({0, 1})};
  p.program->run(zero, 0, 0, {}, &guard);
  EXPECT_TRUE(guard.tripped);
  EXPECT_EQ(p.state->get("w").to_doubles(), (std::vector<double>{1, 2}));
  EXPECT_NE(p.program->trace_not_finite(zero, 0, 0, guard).origin.find("Log"), std::string::npos);
}

// What is made behind the first write nobody has looked at: then the state is kept aside for the
// step. Of integers, such as counters, nothing has to be seen.
TEST(Program, OnlyUnseenFloatsAreAReasonToKeepState) {
  for (const bool counter : {true, false}) {
    SCOPED_TRACE(counter);
    Graph g = text_graph(cat("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}, ",
                             counter ? "int64[2] seen = {0, 0}> " : "float[2] seen = {0, 0}> ",
                             "{ y = Neg(x) next = Add(w, x) ",
                             counter ? "last = Cast<to = 7>(next) }" : "last = Neg(next) }"));
    auto state = std::make_shared<State>();
    state->set("w", Tensor::vector<float>({1, 2}));
    state->set("seen", counter ? Tensor::vector<int64_t>({0, 0}) : Tensor::vector<float>({0, 0}));
    for (const char* name : {"w", "seen"}) g.value(g.find(name)).state = name;
    const StateUpdates updates = {{g.find("next"), "w"}, {g.find("last"), "seen"}};
    Program p(std::move(g), updates, state, std::make_shared<ThreadPool>(1), {});
    double norm = -1;
    Guard guard;
    guard.before_writes = [&](double n) { norm = n; };
    p.run({Tensor::vector<float>({3, 4})}, 0, 0, {}, &guard);
    EXPECT_FALSE(guard.tripped);
    EXPECT_EQ(std::isfinite(norm), counter);
    EXPECT_EQ(state->get("w").to_doubles(), (std::vector<double>{4, 6}));
    EXPECT_EQ(state->get("seen").to_doubles(),
              counter ? std::vector<double>({4, 6}) : std::vector<double>({-4, -6}));
  }
}

// The step that writes the state makes the infinity itself: its operands are finite.
TEST(Program, AGuardSeesWhatTheWritingStepMakes) {
  for (const char* next : {"a = Log(x) next = Mul(w, a)", "next = Div(w, x)",
                           "a = Reciprocal(x) b = Mul(w, a) next = Sub(w, b)"}) {
    SCOPED_TRACE(next);
    StateProgram p(
        cat("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Neg(x) ", next, " }"));
    Guard guard;
    p.program->run({Tensor::vector<float>({0, 1})}, 0, 0, {}, &guard);
    EXPECT_TRUE(guard.tripped);
    EXPECT_EQ(p.state->get("w").to_doubles(), (std::vector<double>{1, 2}));
    Guard fine;
    p.program->run({Tensor::vector<float>({2, 4})}, 0, 1, {}, &fine);
    EXPECT_FALSE(fine.tripped);
    EXPECT_NE(p.state->get("w").to_doubles(), (std::vector<double>{1, 2}));
  }
}

}  // namespace onnxtrain::testing
