// Subgraphs and constants: an If with a known condition becomes the nodes of its branch; constants
// that a body captures move into it, where they can be folded.
#include <algorithm>

#include "passes/passes.hpp"

namespace onnxtrain {

namespace {

// The branch's nodes in place of the If; its outputs keep their numbers through Identity.
void splice(Graph& g, const Node& n, const Graph& branch) {
  std::vector<ValueId> captured;
  for (const auto& c : branch.captures) captured.push_back(c.outer);
  std::vector<ValueId> outs = g.append(branch, {}, captured);
  for (size_t k = 0; k < n.outputs.size() && k < outs.size(); ++k) {
    if (n.outputs[k] == kNone) continue;
    Node id;
    id.op = "Identity";
    id.version = n.version;
    id.name = n.name;
    id.inputs = {outs[k]};
    id.outputs = {n.outputs[k]};
    g.nodes.push_back(std::move(id));
  }
}

}  // namespace

bool inline_constant_ifs(Graph& g) {
  auto known = [&](const Node& n) {
    if (!n.is("If") || n.inputs.size() != 1 || n.inputs[0] == kNone) return false;
    const ValueDef& d = g.value(n.inputs[0]);
    bool fed = std::find(g.inputs.begin(), g.inputs.end(), n.inputs[0]) != g.inputs.end();
    return d.is_constant() && !fed && d.constant.dtype() == DType::kBool && d.constant.size() == 1;
  };
  if (std::none_of(g.nodes.begin(), g.nodes.end(), known)) return false;
  std::vector<Node> old = std::move(g.nodes);
  g.nodes.clear();
  bool any = false;
  for (Node& n : old) {
    GraphPtr branch = known(n) ? n.graph(*g.value(n.inputs[0]).constant.as<bool>() ? "then_branch"
                                                                                   : "else_branch")
                               : nullptr;
    if (branch && branch->inputs.empty() && branch->outputs.size() >= n.outputs.size()) {
      splice(g, n, *branch);
      any = true;
    } else {
      g.nodes.push_back(std::move(n));
    }
  }
  g.renumber();
  return any;
}

void absorb_constants(Graph& g) {
  for (Node& n : g.nodes)
    for (auto& [key, a] : n.attrs) {
      GraphPtr* sub = std::get_if<GraphPtr>(&a);
      if (!sub) continue;
      auto constant = [&](const Graph::Capture& c) {
        bool fed = std::find(g.inputs.begin(), g.inputs.end(), c.outer) != g.inputs.end();
        return g.value(c.outer).is_constant() && !fed;
      };
      if (std::none_of((*sub)->captures.begin(), (*sub)->captures.end(), constant)) continue;
      auto copy = std::make_shared<Graph>((*sub)->clone());
      for (const auto& c : copy->captures) {
        if (!constant(c)) continue;
        copy->value(c.inner).constant = g.value(c.outer).constant;
        copy->value(c.inner).type = g.value(c.outer).type;
      }
      std::erase_if(copy->captures, constant);
      *sub = std::move(copy);
    }
}

}  // namespace onnxtrain
