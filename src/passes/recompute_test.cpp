// Recomputation and order: less memory at once, the same bits; on chains and on random graphs.
#include "passes/recompute.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "engine/program.hpp"
#include "passes/passes.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

namespace {

constexpr int64_t kRows = 8, kColumns = 96;

struct Builder {
  Graph g;
  Builder() {
    ValueId x = g.add_value("x", TypeInfo::tensor(DType::kFloat, {kRows, kColumns}));
    g.inputs.push_back(x);
  }
  ValueId add(const std::string& op, int version, std::vector<ValueId> inputs, const Shape& shape) {
    Node n;
    n.op = op;
    n.version = version;
    n.name = cat(op, "_", g.nodes.size());
    n.inputs = std::move(inputs);
    ValueId v = g.add_node(std::move(n), 1)[0];
    g.value(v).type = TypeInfo::tensor(DType::kFloat, shape);
    return v;
  }
  ValueId constant(Tensor t) { return g.add_constant(std::move(t)); }
};

std::vector<Value> run(const Graph& g) {
  ProgramOptions o;
  o.skip_passes = {"cse", "fuse_elementwise", "identity", "schedule_late", "recompute"};
  auto pool = std::make_shared<ThreadPool>(2);
  Program p(g.clone(), {}, std::make_shared<State>(), pool, o);
  return p.run({random_tensor({kRows, kColumns}, -1, 1, 7)}, 5, 2);
}

void expect_same(const Graph& a, const Graph& b) {
  std::vector<Value> x = run(a), y = run(b);
  ASSERT_EQ(x.size(), y.size());
  for (size_t k = 0; k < x.size(); ++k) {
    const Tensor &p = std::get<Tensor>(x[k]), &q = std::get<Tensor>(y[k]);
    ASSERT_EQ(p.bytes(), q.bytes());
    EXPECT_EQ(std::memcmp(p.data(), q.data(), p.bytes()), 0) << k;
  }
}

// x -> Tanh -> ... -> Tanh, then the results are read again from the last to the first.
Graph there_and_back(int depth) {
  Builder b;
  std::vector<ValueId> way = {b.g.inputs[0]};
  for (int k = 0; k < depth; ++k) way.push_back(b.add("Tanh", 13, {way.back()}, {kRows, kColumns}));
  ValueId back = way.back();
  for (int k = depth; k-- > 0;) back = b.add("Add", 14, {back, way[size_t(k)]}, {kRows, kColumns});
  b.g.outputs = {back};
  b.g.renumber();
  return b.g;
}

// Any reads of anything before, views and random nodes among them.
Graph random_graph(uint32_t seed) {
  std::mt19937 random(seed);
  Builder b;
  ValueId flat = b.constant(Tensor::vector<int64_t>({kRows * kColumns}));
  ValueId square = b.constant(Tensor::vector<int64_t>({kRows, kColumns}));
  ValueId ratio = b.constant(Tensor::scalar(0.3f)), training = b.constant(Tensor::scalar(true));
  std::vector<ValueId> values = {b.g.inputs[0]};
  auto any = [&] {
    size_t back = random() % 4 == 0 ? random() % values.size()
                                    : random() % std::min<size_t>(3, values.size());
    return values[values.size() - 1 - back];
  };
  for (int k = 0; k < 40; ++k) {
    ValueId v = any();
    switch (random() % 5) {
      case 0:
        v = b.add("Tanh", 13, {v}, {kRows, kColumns});
        break;
      case 1:
        v = b.add("Dropout", 13, {v, ratio, training}, {kRows, kColumns});
        break;
      case 2:
        v = b.add("Reshape", 14, {v, flat}, {kRows * kColumns});
        v = b.add("Reshape", 14, {v, square}, {kRows, kColumns});
        break;
      default:
        v = b.add(random() % 2 ? "Add" : "Mul", 14, {v, any()}, {kRows, kColumns});
    }
    values.push_back(v);
  }
  b.g.outputs = {values.back(), values[values.size() / 2]};
  b.g.remove_dead();
  b.g.renumber();
  return b.g;
}

TEST(Recompute, ChainNeedsAFractionOfTheMemory) {
  Graph g = there_and_back(32);
  Recomputation r(g, {}, all_ops());
  const size_t whole = r.peak(), one = kRows * kColumns * sizeof(float);
  EXPECT_GE(whole, 32 * one);
  EXPECT_TRUE(r.reduce_to(whole * 3 / 5));
  EXPECT_LE(r.peak(), whole * 3 / 5);
  EXPECT_GT(r.copies(), 0);
  EXPECT_LT(r.copies(), 32);  // none twice
  Graph h = r.rewritten();
  h.verify("recompute");
  expect_same(g, h);
  EXPECT_FALSE(r.reduce_to(one));
}

TEST(Recompute, NothingIsDoneWhenItFits) {
  Graph g = there_and_back(8);
  Recomputation r(g, {}, all_ops());
  EXPECT_TRUE(r.reduce_to(r.peak()));
  EXPECT_EQ(r.copies(), 0);
  EXPECT_EQ(r.rewritten().nodes.size(), g.nodes.size());
}

TEST(Recompute, RandomGraphsKeepTheirBits) {
  int reduced = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    Graph g = random_graph(seed);
    Recomputation r(g, {}, all_ops());
    const size_t before = r.peak();
    r.reduce_to(seed % 2 ? 0 : before * 4 / 5);
    reduced += r.peak() < before;
    EXPECT_LE(r.peak(), before);
    Graph h = r.rewritten();
    h.verify("recompute");
    // what it says is what a second look at the new graph says, or better
    EXPECT_LE(Recomputation(h, {}, all_ops()).peak(), r.peak());
    expect_same(g, h);
  }
  EXPECT_GT(reduced, 10);
}

TEST(ScheduleLate, LargeResultsOfSmallOperandsWait) {
  Builder b;
  ValueId small = b.add("Tanh", 13, {b.g.inputs[0]}, {kRows, kColumns});
  ValueId axis = b.constant(Tensor::vector<int64_t>({64, kRows, kColumns}));
  ValueId large = b.add("Expand", 13, {small, axis}, {64, kRows, kColumns});
  ValueId other = b.add("Expand", 13, {b.g.inputs[0], axis}, {64, kRows, kColumns});
  ValueId sum = b.add("ReduceSum", 13, {other}, {1, 1, 1});
  ValueId last = b.add("ReduceSum", 13, {large}, {1, 1, 1});
  last = b.add("Mul", 14, {last, sum}, {1, 1, 1});
  b.g.outputs = {last};
  b.g.renumber();
  Graph g = b.g;
  const size_t before = Recomputation(g, {}, all_ops()).peak();
  std::vector<ValueId> keep;
  pass_schedule_late(g, {keep, all_ops()});
  g.renumber();
  g.verify("schedule_late");
  EXPECT_LT(Recomputation(g, {}, all_ops()).peak(), before);
  expect_same(b.g, g);
}

TEST(ScheduleLate, RandomGraphsKeepTheirBits) {
  for (uint32_t seed = 100; seed < 140; ++seed) {
    Graph g = random_graph(seed), h = g;
    std::vector<ValueId> keep;
    pass_schedule_late(h, {keep, all_ops()});
    h.renumber();
    h.verify("schedule_late");
    EXPECT_LE(Recomputation(h, {}, all_ops()).peak(), Recomputation(g, {}, all_ops()).peak());
    expect_same(g, h);
  }
}

}  // namespace

}  // namespace onnxtrain::testing
