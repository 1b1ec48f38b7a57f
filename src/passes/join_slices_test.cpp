// Gradients of slices become one Concat when they cover the whole, and only then.
#include <gtest/gtest.h>

#include "engine/program.hpp"
#include "passes/passes.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

namespace {

struct Cut {
  int64_t start, end;
};

// Sum of the gradients of cuts along `axis` of [2,9,5].
Graph sum_of(const std::vector<Cut>& cuts, int64_t axis, std::vector<Tensor>& feeds) {
  Graph g;
  Shape whole = {2, 9, 5};
  ValueId shape = g.add_constant(Tensor::vector<int64_t>({2, 9, 5})), sum = kNone;
  auto call = [&](const char* op, const std::string& domain, std::vector<ValueId> in) {
    Node n;
    n.op = op;
    n.domain = domain;
    n.version = domain.empty() ? 17 : 1;
    n.inputs = std::move(in);
    ValueId v = g.add_node(std::move(n), 1)[0];
    g.value(v).type = TypeInfo::tensor(DType::kFloat, whole);
    return v;
  };
  for (const Cut& c : cuts) {
    Shape s = whole;
    size_t d = size_t(axis < 0 ? axis + 3 : axis);
    s[d] = (c.end < 0 ? c.end + whole[d] : c.end) - (c.start < 0 ? c.start + whole[d] : c.start);
    ValueId x = g.add_value(cat("x", feeds.size()), TypeInfo::tensor(DType::kFloat, s));
    g.inputs.push_back(x);
    feeds.push_back(random_tensor(s, -1, 1, feeds.size() + 1));
    ValueId part = call("SliceGrad", std::string(kOwnDomain),
                        {x, shape, g.add_constant(Tensor::vector<int64_t>({c.start})),
                         g.add_constant(Tensor::vector<int64_t>({c.end})),
                         g.add_constant(Tensor::vector<int64_t>({axis}))});
    sum = sum == kNone ? part : call("Add", "", {part, sum});
  }
  g.outputs = {sum};
  return g;
}

void check(const std::vector<Cut>& cuts, int64_t axis, const std::string& want) {
  std::vector<Tensor> feeds;
  Graph g = sum_of(cuts, axis, feeds), copy = g.clone();
  pass_join_slices(copy, PassContext{{}, all_ops()});
  copy.renumber();
  copy.verify("join_slices");
  std::string ops;
  for (const Node& n : copy.nodes) ops += n.op + " ";
  EXPECT_EQ(ops, want);
  auto run = [&](std::vector<std::string> skip) {
    ProgramOptions o;
    o.skip_passes = std::move(skip);
    Program p(g.clone(), {}, std::make_shared<State>(), std::make_shared<ThreadPool>(2), o);
    return std::get<Tensor>(p.run(std::vector<Value>(feeds.begin(), feeds.end()), 0, 0)[0]);
  };
  Tensor a = run({}), b = run({"join_slices"});
  for (int64_t i = 0; i < a.size(); ++i) ASSERT_EQ(a.as<float>()[i], b.as<float>()[i]);
}

TEST(JoinSlices, WholeTensor) {
  check({{0, 3}, {3, 6}, {6, 9}}, 1, "Concat ");
  check({{4, 9}, {0, 4}}, 1, "Concat ");
  check({{0, 2}, {-3, 5}}, -1, "Concat ");
}

TEST(JoinSlices, GapsAndOverlapsStay) {
  check({{0, 3}, {4, 9}}, 1, "SliceGrad SliceGrad Add ");
  check({{0, 5}, {4, 9}}, 1, "SliceGrad SliceGrad Add ");
}

}  // namespace
}  // namespace onnxtrain::testing
