// Main graph + algorithm -> the graph of one training step.
#include <map>

#include "autodiff/autodiff.hpp"
#include "engine/program.hpp"

namespace onnxtrain {

Graph combine(const Graph& main, const TrainingStep& step) {
  Graph g = main.clone();
  g.name = main.name + "+" + step.algorithm.name;
  Graph alg = step.algorithm.clone();
  std::vector<ValueId> to(alg.values.size(), kNone);
  for (const auto& c : alg.captures) to[size_t(c.inner)] = c.outer;
  for (size_t k = 0; k < alg.values.size(); ++k) {
    if (to[k] != kNone) continue;
    to[k] = ValueId(g.values.size());
    g.values.push_back(alg.values[k]);
  }
  auto map = [&](ValueId v) { return v == kNone ? kNone : to[size_t(v)]; };
  for (Node& n : alg.nodes) {
    for (ValueId& v : n.inputs) v = map(v);
    for (ValueId& v : n.outputs) v = map(v);
    for (auto& [key, a] : n.attrs)
      if (GraphPtr* sub = std::get_if<GraphPtr>(&a))
        for (auto& c : (*sub)->captures) c.outer = map(c.outer);
    g.nodes.push_back(std::move(n));
  }
  for (ValueId v : alg.inputs) g.inputs.push_back(map(v));
  std::vector<ValueId> outputs;
  for (ValueId v : alg.outputs) outputs.push_back(map(v));
  outputs.insert(outputs.end(), g.outputs.begin(), g.outputs.end());
  g.outputs = std::move(outputs);
  g.renumber();
  resolve_gradients(g);
  return g;
}

}  // namespace onnxtrain
