// Forwards the input of Identity nodes to their readers.
#include <algorithm>

#include "passes/passes.hpp"

namespace onnxtrain {

void pass_identity(Graph& g, const PassContext& c) {
  std::vector<ValueId> to(g.values.size());
  for (size_t k = 0; k < to.size(); ++k) to[k] = ValueId(k);
  bool any = false;
  for (const Node& n : g.nodes) {
    if (!n.is("Identity") || n.inputs.size() != 1 || n.outputs.size() != 1) continue;
    ValueId out = n.outputs[0];
    // an update or an output keeps its own value: replacing it would rename what callers hold
    bool fixed = std::find(c.keep.begin(), c.keep.end(), out) != c.keep.end() ||
                 std::find(g.outputs.begin(), g.outputs.end(), out) != g.outputs.end();
    to[size_t(out)] = to[size_t(n.inputs[0])];
    any |= !fixed;
  }
  if (!any) return;
  for (Node& n : g.nodes) {
    for (ValueId& v : n.inputs)
      if (v != kNone) v = to[size_t(v)];
    for (auto& [key, a] : n.attrs)
      if (GraphPtr* sub = std::get_if<GraphPtr>(&a)) {
        auto copy = std::make_shared<Graph>(**sub);
        for (auto& cap : copy->captures) cap.outer = to[size_t(cap.outer)];
        *sub = std::move(copy);
      }
  }
}

}  // namespace onnxtrain
