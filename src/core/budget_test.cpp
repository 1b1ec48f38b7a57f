// Budgets: what is counted, what is given back, what is refused.
#include "core/budget.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "core/counted.hpp"
#include "core/error.hpp"
#include "core/memory.hpp"
#include "core/table_budget.hpp"
#include "core/tensor.hpp"
#include "core/text_memory.hpp"

namespace onnxtrain {

namespace {

template <class F>
std::string code_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.code();
  }
  return "";
}

Limits of_memory(size_t bytes) {
  Limits l = Limits::none();
  l.memory = bytes;
  return l;
}

}  // namespace

TEST(Budget, CountsTensorsOfThisRunOnly) {
  Tensor before(DType::kFloat, {1 << 18});
  Budget b(of_memory(1 << 20), nullptr, false);
  Tensor first(DType::kFloat, {100'000});
  EXPECT_EQ(code_of([&] { Tensor second(DType::kFloat, {200'000}); }), "OT1401");
  first = Tensor();
  EXPECT_EQ(code_of([&] { Tensor second(DType::kFloat, {200'000}); }), "");
}

TEST(Budget, GivesBackAfterTheRunHasEnded) {
  const size_t before = memory_in_use();
  Tensor kept;
  {
    Budget b(of_memory(1 << 20), nullptr, false);
    kept = Tensor(DType::kFloat, {1000});
  }
  EXPECT_GT(memory_in_use(), before);
  kept = Tensor();
  EXPECT_EQ(memory_in_use(), before);
}

TEST(Budget, CountsCharges) {
  Budget b(of_memory(1 << 20), nullptr, false);
  Charge c;
  EXPECT_EQ(code_of([&] { c.set((1 << 20) + 1); }), "OT1401");
  c.set(900'000);
  EXPECT_EQ(code_of([&] {
              // a copy is charged
              // NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
              Charge copy(c);
            }),
            "OT1401");
  c.set(0);
  EXPECT_EQ(code_of([&] { check_memory(900'000); }), "");
}

TEST(Budget, CountsVectorsOfKernels) {
  const size_t before = memory_in_use();
  {
    Budget b(of_memory(1 << 20), nullptr, false);
    CountedVector<int64_t> table(100'000, 7);
    EXPECT_EQ(code_of([] { CountedVector<int64_t> more(40'000); }), "OT1401");
    EXPECT_EQ(table.back(), 7);
    table = CountedVector<int64_t>();
    CountedVector<int64_t> copy(100'000, 1);
    EXPECT_EQ(code_of([&] {
                CountedVector<int64_t> again = copy;
                again.clear();
              }),
              "OT1401");
  }
  EXPECT_EQ(memory_in_use(), before);
}

TEST(Budget, CountsTablesOfAPlanAlone) {
  const size_t before = memory_in_use();
  {
    const TableBudget tables(of_memory(1 << 20));
    EXPECT_EQ(Budget::current(), nullptr);
    const NoBudget planned;
    const Tensor part(DType::kFloat, {1'000'000});
    CountedVector<int64_t> table(100'000, 7);
    EXPECT_EQ(code_of([] { CountedVector<int64_t> more(40'000); }), "OT1401");
    table = CountedVector<int64_t>();
    const CountedVector<int64_t> again(100'000, 1);
    EXPECT_EQ(Budget::current(), nullptr);
  }
  EXPECT_EQ(memory_in_use(), before);
}

TEST(Budget, CountsTextBeforeItIsCopied) {
  Tensor words(DType::kString, {100});
  for (int k = 0; k < 100; ++k) words.as<std::string>()[k] = std::string(10'000, 'a');
  EXPECT_GE(text_bytes(words), 1'000'000u);
  EXPECT_EQ(text_bytes(Tensor(DType::kFloat, {100})), 0u);
  EXPECT_EQ(heap_bytes(15), 0u);
  EXPECT_EQ(heap_bytes(32), 48u);
  Budget b(of_memory(900'000), nullptr, false);
  EXPECT_EQ(code_of([&] { words.clone(); }), "OT1401");
}

TEST(Budget, CountsIterationsAndNamesTheFlag) {
  Limits l = Limits::none();
  l.loop_trips = 3;
  Budget b(l, nullptr, false);
  for (int k = 0; k < 3; ++k) count_trip("Loop");
  try {
    count_trip("Loop");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "OT1402");
    EXPECT_NE(e.hint().find("--max-loop-trips 30"), std::string::npos) << e.hint();
  }
  EXPECT_EQ(code_of([] { check_trips("Loop", 4); }), "OT1402");
  EXPECT_EQ(code_of([] { check_trips("Loop", 3); }), "");
}

TEST(Budget, TimeCountsInLoops) {
  Limits l = Limits::none();
  l.seconds = 1e-9;
  Budget b(l, nullptr, false);
  EXPECT_EQ(code_of([&] { b.check_time(); }), "");  // not in a loop
  EXPECT_EQ(code_of([] { count_trip("Loop"); }), "OT1405");
  Budget given(l, nullptr, true);
  EXPECT_EQ(code_of([&] { given.check_time(); }), "OT1405");
}

TEST(Budget, DefaultsGrowWithModelAndData) {
  const Limits small = with_defaults({}, 0), large = with_defaults({}, 1 << 20);
  EXPECT_LE(small.memory, size_t(512) << 20);
  EXPECT_LE(large.memory, memory_limit());
  EXPECT_GE(large.memory, small.memory);
  EXPECT_GT(large.seconds, small.seconds);
  Limits given;
  given.memory = 1234;
  given.seconds = 5;
  EXPECT_EQ(with_defaults(given, 1 << 20).memory, 1234u);
  EXPECT_EQ(with_defaults(given, 1 << 20).seconds, 5);
}

TEST(Budget, EnvironmentFillsWhatIsNotGiven) {
  setenv("ONNXTRAIN_MEMORY", "3M", 1);
  setenv("ONNXTRAIN_MAX_LOOP_TRIPS", "7", 1);
  const Limits l = with_environment({});
  EXPECT_EQ(l.memory, size_t(3) << 20);
  EXPECT_EQ(l.loop_trips, 7);
  Limits given;
  given.memory = 5;
  EXPECT_EQ(with_environment(given).memory, 5u);
  setenv("ONNXTRAIN_MEMORY", "much", 1);
  EXPECT_EQ(code_of([] { with_environment({}); }), "OT0009");
  unsetenv("ONNXTRAIN_MEMORY");
  unsetenv("ONNXTRAIN_MAX_LOOP_TRIPS");
}

}  // namespace onnxtrain
