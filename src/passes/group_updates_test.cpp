// Optimizer nodes that go together, and updates that move to their gradients.
#include <gtest/gtest.h>

#include "engine/program.hpp"
#include "passes/passes.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

namespace {

// A graph of updates of `sizes` tensors by `op`; settings as float64 attributes.
struct Updates {
  Graph g;
  std::vector<std::pair<ValueId, std::string>> updates;
  std::shared_ptr<State> state = std::make_shared<State>();
  ValueId rate, step;

  Updates() {
    rate = g.add_constant(Tensor::scalar(0.1f));
    step = g.add_constant(Tensor::scalar(int64_t(3)));
  }
  ValueId variable(const std::string& name, int64_t n, uint64_t seed) {
    state->set(name, random_tensor({n}, 0.1, 1, seed));
    ValueId v = g.add_value(name, TypeInfo::tensor(DType::kFloat, {n}));
    g.value(v).state = name;
    return v;
  }
  // `factor`: the gradient is multiplied by it, as clipping does
  void add(const std::string& op, const std::string& domain, bool has_step, int states, int64_t n,
           Attributes attrs, ValueId factor = kNone) {
    std::string name = cat("w", updates.size());
    ValueId x = g.add_value("g_" + name, TypeInfo::tensor(DType::kFloat, {n}));
    g.inputs.push_back(x);
    Node square;  // something that makes the gradient
    square.op = "Mul";
    square.version = 14;
    square.inputs = {x, x};
    ValueId grad = g.add_node(std::move(square), 1)[0];
    g.value(grad).type = TypeInfo::tensor(DType::kFloat, {n});
    if (factor != kNone) {
      Node product;
      product.op = "Mul";
      product.version = 14;
      product.inputs = {grad, factor};
      grad = g.add_node(std::move(product), 1)[0];
      g.value(grad).type = TypeInfo::tensor(DType::kFloat, {n});
    }
    Node u;
    u.op = op;
    u.domain = domain;
    u.version = 1;
    u.attrs = std::move(attrs);
    u.inputs = {rate};
    if (has_step) u.inputs.push_back(step);
    std::vector<std::string> names = {name};
    u.inputs.push_back(variable(name, n, updates.size() + 1));
    u.inputs.push_back(grad);
    for (int s = 0; s < states; ++s) {
      names.push_back(cat(name, ".", s));
      u.inputs.push_back(variable(names.back(), n, updates.size() + 10));
    }
    std::vector<ValueId> out = g.add_node(std::move(u), 1 + states);
    for (size_t k = 0; k < out.size(); ++k) {
      g.value(out[k]).type = TypeInfo::tensor(DType::kFloat, {n});
      updates.emplace_back(out[k], names[k]);
    }
  }
  std::string ops() const {
    Graph c = g.clone();
    std::vector<ValueId> keep;
    for (const auto& u : updates) keep.push_back(u.first);
    pass_scale_updates(c, PassContext{keep, all_ops()});
    pass_group_updates(c, PassContext{keep, all_ops()});
    c.renumber();
    c.verify("group_updates");
    std::string s;
    for (const Node& n : c.nodes) s += n.op + " ";
    return s;
  }
  // State after one run.
  std::vector<Tensor> run(std::vector<std::string> skip) const {
    auto copy = std::make_shared<State>();
    for (const auto& name : state->names()) copy->set(name, state->get(name));
    ProgramOptions o;
    o.skip_passes = std::move(skip);
    Program p(g.clone(), updates, copy, std::make_shared<ThreadPool>(2), o);
    std::vector<Value> feeds;
    for (ValueId v : g.inputs)
      feeds.push_back(random_tensor(g.value(v).type.concrete_shape(), -1, 1, uint64_t(v)));
    p.run(feeds, 0, 0);
    std::vector<Tensor> out;
    for (const auto& name : copy->names()) out.push_back(copy->get(name));
    return out;
  }
  void check(const std::string& want) const {
    EXPECT_EQ(ops(), want);
    std::vector<Tensor> a = run({}), b = run({"group_updates", "scale_updates"});
    for (size_t k = 0; k < a.size(); ++k)
      for (int64_t i = 0; i < a[k].size(); ++i)
        ASSERT_EQ(a[k].as<float>()[i], b[k].as<float>()[i]) << k << " " << i;
  }
};

const std::string kOwn(kOwnDomain), kStandard(kTrainingDomain);

TEST(GroupUpdates, SmallOnesOfOneRule) {
  Updates u;
  Attributes one = {{"decay", Tensor::scalar(0.1)}}, other;
  other["decay"] = Tensor::scalar(0.0);
  for (int64_t n : {3, 40, 7}) u.add("AdamW", kOwn, true, 2, n, one);
  u.add("AdamW", kOwn, true, 2, 5, other);
  u.check("Mul Mul Mul MultiUpdate Mul AdamW ");
}

TEST(GroupUpdates, LargeOnesMoveToTheirGradient) {
  Updates u;
  for (int64_t n : {3, 20000, 4}) u.add("Sgd", kOwn, false, 0, n, {});
  // the nodes in file order: all gradients, then all updates
  std::stable_partition(u.g.nodes.begin(), u.g.nodes.end(),
                        [](const Node& n) { return n.op == "Mul"; });
  u.g.renumber();
  u.check("Mul Mul Sgd Mul MultiUpdate ");
}

TEST(GroupUpdates, TheStandardsOperators) {
  Updates u;
  Attributes a = {{"alpha", 0.9f},
                  {"beta", 1.0f},
                  {"norm_coefficient", 0.01f},
                  {"mode", std::string("standard")}};
  for (int64_t n : {3, 9}) u.add("Momentum", kStandard, true, 1, n, a);
  for (int64_t n : {4, 5}) u.add("Adam", kStandard, true, 2, n, {});
  u.check("Mul Mul Momentum Mul Mul Adam ");
}

TEST(GroupUpdates, EveryRuleGivesTheSameNumbers) {
  for (const char* op : {"Lion", "Adam", "AdamAms", "AdamWAms", "AdamKeras", "AdamKerasAms"}) {
    std::string name = op;
    int states = name == "Lion" ? 1 : name.ends_with("Ams") ? 3 : 2;
    Updates u;
    for (int64_t n : {3, 11}) u.add(name, kOwn, name != "Lion", states, n, {});
    u.check("Mul Mul MultiUpdate ");
  }
}

TEST(ScaleUpdates, TheUpdateMultipliesAsItReads) {
  const Attributes momentum = {{"alpha", 0.9f},
                               {"beta", 1.0f},
                               {"norm_coefficient", 0.01f},
                               {"mode", std::string("nesterov")}};
  struct Case {
    std::string op, domain;
    int states;
    Attributes attrs;
    std::string want;
  };
  for (const Case& c :
       {Case{"AdamW", kOwn, 2, {}, "MultiUpdate"}, Case{"Sgd", kOwn, 0, {}, "MultiUpdate"},
        Case{"Lion", kOwn, 1, {}, "MultiUpdate"}, Case{"AdamKerasAms", kOwn, 3, {}, "MultiUpdate"},
        Case{"Momentum", kStandard, 1, momentum, "Momentum"},
        Case{"Adagrad", kStandard, 1, {}, "Adagrad"}, Case{"Adam", kStandard, 2, {}, "Adam"}}) {
    Updates u;
    ValueId factor = u.g.add_constant(Tensor::scalar(0.37f));
    const bool step = c.op != "Sgd" && c.op != "Lion";
    // two small ones in one node, a large one behind its gradient, one that is not scaled
    for (int64_t n : {3, 40}) u.add(c.op, c.domain, step, c.states, n, c.attrs, factor);
    u.add(c.op, c.domain, step, c.states, 20000, c.attrs, factor);
    u.add(c.op, c.domain, step, c.states, 20001, c.attrs);
    u.check(cat("Mul Mul ", c.want, " Mul ", c.want, " Mul ", c.op, " "));
  }
}

TEST(ScaleUpdates, OnlyWhereNobodyElseReadsTheProduct) {
  Updates u;
  ValueId factor = u.g.add_constant(Tensor::scalar(0.37f));
  u.add("Sgd", kOwn, false, 0, 5, {}, factor);
  u.g.outputs.push_back(u.g.nodes.back().inputs[2]);
  u.check("Mul Mul Sgd ");
  Updates v;  // a factor per element
  ValueId each = v.g.add_constant(random_tensor({5}, 0, 1, 9));
  v.add("Sgd", kOwn, false, 0, 5, {}, each);
  v.check("Mul Mul Sgd ");
}

TEST(GroupUpdates, SumsMoveToTheirOperand) {
  Updates u;
  for (int64_t n : {3, 5}) u.add("Sgd", kOwn, false, 0, n, {});
  Node norm;
  norm.op = "ReduceSumSquare";
  norm.version = 18;
  norm.attrs = {{"keepdims", int64_t(0)}};
  norm.inputs = {u.g.nodes[0].outputs[0]};
  ValueId sum = u.g.add_node(std::move(norm), 1)[0];
  u.g.value(sum).type = TypeInfo::tensor(DType::kFloat, {});
  u.g.outputs.push_back(sum);
  u.check("Mul ReduceSumSquare Mul MultiUpdate ");
}

}  // namespace
}  // namespace onnxtrain::testing
