// The memory planner against brute force on thousands of random lifetimes; views, in-place results
// and state in plans of random graphs.
#include "plan/memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "engine/program.hpp"
#include "tests/support/graph_case.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

namespace {

size_t up_to_64(size_t n) { return (n + 63) / 64 * 64; }

// Bytes alive at each step, counted one step at a time.
size_t counted_peak(const std::vector<Lifetime>& lives) {
  int last = 0;
  for (const Lifetime& l : lives) last = std::max(last, l.end);
  size_t peak = 0;
  for (int step = 0; step <= last; ++step) {
    size_t now = 0;
    for (const Lifetime& l : lives)
      if (l.begin <= step && step <= l.end) now += up_to_64(l.bytes);
    peak = std::max(peak, now);
  }
  return peak;
}

void expect_sound(const std::vector<Lifetime>& lives, const MemoryLayout& m) {
  ASSERT_EQ(m.offsets.size(), lives.size());
  ASSERT_EQ(m.peak, counted_peak(lives));
  ASSERT_GE(m.total, m.peak);
  size_t end = 0, all = 0;
  for (size_t a = 0; a < lives.size(); ++a) {
    ASSERT_EQ(m.offsets[a] % 64, 0u);
    if (lives[a].bytes == 0) continue;
    end = std::max(end, m.offsets[a] + up_to_64(lives[a].bytes));
    all += up_to_64(lives[a].bytes);
    for (size_t b = 0; b < a; ++b) {
      const bool together = lives[a].begin <= lives[b].end && lives[b].begin <= lives[a].end;
      const bool overlap = m.offsets[a] < m.offsets[b] + lives[b].bytes &&
                           m.offsets[b] < m.offsets[a] + lives[a].bytes;
      ASSERT_FALSE(together && overlap && lives[b].bytes > 0) << a << " and " << b;
    }
  }
  ASSERT_EQ(m.total, end);
  ASSERT_LE(m.total, all);  // never worse than one place for each
}

std::vector<Lifetime> random_lives(std::mt19937& random) {
  const int steps = 1 + int(random() % 40);
  std::vector<Lifetime> lives(random() % 60);
  for (Lifetime& l : lives) {
    l.begin = int(random() % unsigned(steps));
    const unsigned longest = random() % 4 == 0 ? unsigned(steps - l.begin) : 4;
    l.end = std::min(steps - 1, l.begin + int(random() % longest));
    const size_t sizes[] = {0, 1, 63, 64, 65, random() % 1000, random() % 100000};
    l.bytes = sizes[random() % std::size(sizes)];
  }
  return lives;
}

}  // namespace

TEST(MemoryPlanner, ThousandsOfRandomLifetimes) {
  std::mt19937 random(1);
  for (int round = 0; round < 5000; ++round) {
    std::vector<Lifetime> lives = random_lives(random);
    expect_sound(lives, plan_memory(lives));
    if (::testing::Test::HasFatalFailure()) FAIL() << "round " << round;
  }
}

TEST(MemoryPlanner, TheSameLifetimesGiveTheSameOffsets) {
  std::mt19937 random(2);
  for (int round = 0; round < 100; ++round) {
    std::vector<Lifetime> lives = random_lives(random);
    EXPECT_EQ(plan_memory(lives).offsets, plan_memory(lives).offsets);
  }
}

TEST(MemoryPlanner, PlacesAreUsedAgain) {
  // a chain: only two neighbours are alive at once
  std::vector<Lifetime> chain;
  for (int k = 0; k < 50; ++k) chain.push_back({k, k + 1, 1000});
  MemoryLayout m = plan_memory(chain);
  EXPECT_EQ(m.peak, 2 * up_to_64(1000));
  EXPECT_EQ(m.total, m.peak);
  EXPECT_EQ(plan_memory({}).total, 0u);
  EXPECT_EQ(plan_memory({{0, 3, 0}}).total, 0u);
}

namespace {

// Any reads of anything before; views and operators that may write over an operand among them.
Graph random_plan_graph(uint32_t seed) {
  std::mt19937 random(seed);
  Graph g;
  ValueId x = g.add_value("x", TypeInfo::tensor(DType::kFloat, {6, 10}));
  g.inputs = {x};
  ValueId flat = g.add_constant(Tensor::vector<int64_t>({60})),
          square = g.add_constant(Tensor::vector<int64_t>({6, 10}));
  std::vector<ValueId> values = {x};
  for (int k = 0; k < 30; ++k) {
    auto any = [&] {
      return values[values.size() - 1 - random() % std::min<size_t>(5, values.size())];
    };
    ValueId v = any();
    switch (random() % 4) {
      case 0:
        v = add_call(g, "Reshape", {add_call(g, "Reshape", {v, flat}), square});
        break;
      case 1:
        v = add_call(g, "Sin", {v});
        break;
      case 2:
        v = add_call(g, "Softmax", {v});
        break;
      default:
        v = add_call(g, "Add", {v, any()});
    }
    values.push_back(v);
  }
  g.outputs = {values.back(), values[15]};
  g.remove_dead();
  return g;
}

// Every value that is alive at a step, by the place it lives in; two may share a place only when
// one is the other's view or took its memory over when it was read for the last time.
void expect_disjoint(const Plan& plan) {
  const Graph& g = plan.graph;
  std::vector<int> first(g.values.size(), -1), last(g.values.size(), -1);
  for (size_t k = 0; k < g.nodes.size(); ++k) {
    for (ValueId v : g.reads(g.nodes[k])) last[size_t(v)] = int(k);
    for (ValueId v : g.nodes[k].outputs)
      if (v != kNone)
        first[size_t(v)] = int(k), last[size_t(v)] = std::max(last[size_t(v)], int(k));
  }
  for (ValueId v : g.outputs) last[size_t(v)] = int(g.nodes.size());
  auto bytes = [&](size_t v) {
    return size_t(plan.slots[v].type.size()) * dtype_size(plan.slots[v].type.dtype);
  };
  auto in_arena = [&](size_t v) { return plan.slots[v].place == Place::kArena && first[v] >= 0; };
  const char* base = static_cast<const char*>(plan.arena.get());
  for (size_t a = 0; a < g.values.size(); ++a) {
    if (!in_arena(a)) continue;
    const auto* p = static_cast<const char*>(plan.slots[a].address);
    const ValueId root_a = plan.slots[a].root;
    if (plan.slots[size_t(root_a)].place == Place::kArena) {
      ASSERT_GE(p, base);
      ASSERT_LE(p + bytes(a), base + plan.arena_bytes);
    }
    for (size_t b = 0; b < a; ++b) {
      if (!in_arena(b) || plan.slots[b].root == root_a) continue;
      const auto* q = static_cast<const char*>(plan.slots[b].address);
      const bool together = first[a] <= last[b] && first[b] <= last[a];
      ASSERT_FALSE(together && p < q + bytes(b) && q < p + bytes(a))
          << g.value_name(ValueId(a)) << " and " << g.value_name(ValueId(b));
    }
  }
}

}  // namespace

TEST(MemoryPlanner, PlansOfRandomGraphs) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    ProgramOptions o;
    o.skip_passes = {"cse", "identity", "fuse_elementwise", "schedule_late", "recompute"};
    Program p(random_plan_graph(seed), {}, std::make_shared<State>(),
              std::make_shared<ThreadPool>(1), o);
    const Plan& plan = p.plan_for({random_tensor({6, 10})});
    expect_disjoint(plan);
    if (::testing::Test::HasFatalFailure())
      FAIL() << "seed " << seed << "\n" << to_text(plan.graph);
  }
}

// Values computed in shared memory are those of a run where every node's results are kept.
TEST(MemoryPlanner, SharedMemoryGivesTheSameNumbers) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    Graph g = random_plan_graph(seed), all = g.clone();
    for (const Node& n : all.nodes)
      for (ValueId v : n.outputs)
        if (std::find(all.outputs.begin(), all.outputs.end(), v) == all.outputs.end())
          all.outputs.push_back(v);
    Tensor x = random_tensor({6, 10}, -1, 1, seed + 1);
    auto run = [&](const Graph& graph) {
      ProgramOptions o;
      o.skip_passes = {"cse", "identity", "fuse_elementwise", "schedule_late", "recompute"};
      Program p(graph.clone(), {}, std::make_shared<State>(), std::make_shared<ThreadPool>(1), o);
      return p.run({x}, 1, 1);
    };
    std::vector<Value> a = run(g), b = run(all);
    for (size_t k = 0; k < a.size(); ++k)
      ASSERT_EQ(std::get<Tensor>(a[k]).to_doubles(), std::get<Tensor>(b[k]).to_doubles())
          << "seed " << seed;
  }
}

}  // namespace onnxtrain::testing
