// Neighbouring nodes that another runtime runs become one: what lies between them does not cross.
#include <algorithm>

#include "op/foreign.hpp"
#include "passes/passes.hpp"

namespace onnxtrain {

namespace {

// Gradients that somebody registered are called one by one.
bool joins(const Node& n) { return is_foreign(n) && !is_foreign_gradient(n); }

// Nodes [from, to) as one node with a graph.
Node partition(Graph& g, const std::vector<Node>& nodes, size_t from, size_t to,
               const std::vector<char>& read_outside) {
  auto part = std::make_shared<Graph>();
  part->name = "part";
  Node all;
  all.domain = kOwnDomain;
  all.op = "Partition";
  all.version = 1;
  all.name = nodes[from].name;
  std::vector<ValueId> inner(g.values.size(), kNone);
  for (size_t k = from; k < to; ++k) {
    Node n = nodes[k];
    n.attrs.erase(std::string(kGradientBody));
    for (ValueId& v : n.inputs) {
      if (v == kNone) continue;
      ValueId& here = inner[size_t(v)];
      if (here == kNone) {
        here = part->add_value(g.value_name(v), g.value(v).type);
        part->inputs.push_back(here);
        all.inputs.push_back(v);
      }
      v = here;
    }
    for (ValueId& v : n.outputs) {
      if (v == kNone) continue;
      const ValueId outer = v;
      v = inner[size_t(outer)] = part->add_value(g.value_name(outer), g.value(outer).type);
      if (!read_outside[size_t(outer)]) continue;
      part->outputs.push_back(v);
      all.outputs.push_back(outer);
    }
    part->nodes.push_back(std::move(n));
  }
  part->renumber();
  all.attrs["body"] = part;
  return all;
}

}  // namespace

void pass_partition(Graph& g, const PassContext& c) {
  if (std::count_if(g.nodes.begin(), g.nodes.end(), joins) < 2) return;
  std::vector<Node> nodes = std::move(g.nodes);
  g.nodes.clear();
  for (size_t k = 0; k < nodes.size();) {
    size_t end = k;
    while (end < nodes.size() && joins(nodes[end])) ++end;
    if (end - k < 2) {
      g.nodes.push_back(std::move(nodes[k]));
      ++k;
      continue;
    }
    std::vector<char> outside(g.values.size(), 0);
    for (ValueId v : g.outputs) outside[size_t(v)] = 1;
    for (ValueId v : c.keep)
      if (v != kNone) outside[size_t(v)] = 1;
    for (size_t j = end; j < nodes.size(); ++j)
      for (ValueId v : g.reads(nodes[j])) outside[size_t(v)] = 1;
    g.nodes.push_back(partition(g, nodes, k, end, outside));
    k = end;
  }
  g.renumber();
}

}  // namespace onnxtrain
