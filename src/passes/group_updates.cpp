// Optimizer nodes: many small tensors with the same rule, settings and scalars become one node; an
// update of a large tensor moves to where its gradient is made, so that the gradient is still in
// the cache and its memory is free again.
#include <algorithm>

#include "graph/same.hpp"
#include "passes/passes.hpp"
#include "passes/updates.hpp"

namespace onnxtrain {

namespace {

constexpr int64_t kSmall = 16384;  // elements; larger tensors keep all threads busy by themselves

class Grouper {
 public:
  Grouper(Graph& g, const OpTable& table) : g_(g), table_(table), readers_(g.consumers()) {}

  void run() {
    collect();
    std::vector<char> gone(g_.nodes.size(), 0);
    for (const auto& group : groups_) {
      if (group.size() < 2) continue;
      for (NodeId k : group) gone[size_t(k)] = 1;
      gone[size_t(group.back())] = 0;
      g_.nodes[size_t(group.back())] = merged(group);
    }
    std::vector<Node> kept;
    for (size_t k = 0; k < g_.nodes.size(); ++k)
      if (!gone[k]) kept.push_back(std::move(g_.nodes[k]));
    g_.nodes = std::move(kept);
  }

 private:
  bool small(const Node& n, const UpdateForm& r) const {
    for (size_t k = size_t(r.scalars); k < n.inputs.size(); ++k) {
      if (n.inputs[k] == kNone) return false;
      const TypeInfo& t = g_.value(n.inputs[k]).type;
      if (!t.concrete() || t.elem != DType::kFloat || num_elements(t.concrete_shape()) > kSmall)
        return false;
    }
    for (ValueId v : n.outputs)
      if (v == kNone || !readers_[size_t(v)].empty()) return false;
    return int(n.outputs.size()) == 1 + r.states;
  }

  bool together(const Node& a, const Node& b, const UpdateForm& r) const {
    if (a.op != b.op || a.domain != b.domain || a.version != b.version) return false;
    if (a.i(kScaled, 0) && a.inputs.back() != b.inputs.back()) return false;
    for (int k = 0; k < r.scalars; ++k)
      if (a.inputs[size_t(k)] != b.inputs[size_t(k)]) return false;
    if (a.attrs.size() != b.attrs.size()) return false;
    for (const auto& [key, value] : a.attrs) {
      const Attr* other = b.find(key);
      if (!other || !same_attr(value, *other)) return false;
    }
    return true;
  }

  void collect() {
    for (size_t k = 0; k < g_.nodes.size(); ++k) {
      const Node& n = g_.nodes[k];
      const UpdateForm* r = update_form(n, table_);
      if (!r || !small(n, *r)) continue;
      auto it = std::find_if(groups_.begin(), groups_.end(), [&](const auto& group) {
        return together(g_.nodes[size_t(group[0])], n, *r);
      });
      if (it == groups_.end())
        groups_.push_back({NodeId(k)});
      else
        it->push_back(NodeId(k));
    }
  }

  Node merged(const std::vector<NodeId>& group) const {
    const Node& first = g_.nodes[size_t(group[0])];
    const UpdateForm& r = *update_form(first, table_);
    Node n;
    n.name = cat(first.name, "_and_", group.size() - 1, "_more");
    n.attrs = first.attrs;
    n.inputs.assign(first.inputs.begin(), first.inputs.begin() + r.scalars);
    const int scaled = first.i(kScaled, 0) == 1;  // the factor stays the last input
    if (first.domain == kOwnDomain) {
      n.domain = kOwnDomain;
      n.op = "MultiUpdate";
      n.version = 1;
      n.attrs["rule"] = update_rule(first);
      for (NodeId k : group) {
        const Node& m = g_.nodes[size_t(k)];
        n.inputs.insert(n.inputs.end(), m.inputs.begin() + r.scalars, m.inputs.end() - scaled);
        n.outputs.insert(n.outputs.end(), m.outputs.begin(), m.outputs.end());
      }
      if (scaled) n.inputs.push_back(first.inputs.back());
      return n;
    }
    n.domain = first.domain;
    n.op = first.op;
    n.version = first.version;
    for (int kind = 0; kind < 2 + r.states; ++kind)
      for (NodeId k : group)
        n.inputs.push_back(g_.nodes[size_t(k)].inputs[size_t(r.scalars) + size_t(kind)]);
    for (int kind = 0; kind <= r.states; ++kind)
      for (NodeId k : group) n.outputs.push_back(g_.nodes[size_t(k)].outputs[size_t(kind)]);
    if (scaled) n.inputs.push_back(first.inputs.back());
    return n;
  }

  Graph& g_;
  const OpTable& table_;
  std::vector<std::vector<NodeId>> readers_;
  std::vector<std::vector<NodeId>> groups_;
};

// The node after which an update may run: its operands are there and nothing reads the old state
// any more. `last_read`: by name of the state variable.
NodeId earliest(const Graph& g, const Node& n, NodeId self,
                const std::map<std::string, std::vector<NodeId>>& reads) {
  NodeId after = -1;
  for (ValueId v : n.inputs) {
    if (v == kNone) continue;
    after = std::max(after, g.value(v).producer);
    auto it = reads.find(g.value(v).state);
    if (g.value(v).state.empty() || it == reads.end()) continue;
    for (NodeId r : it->second)
      if (r != self) after = std::max(after, r);
  }
  return after;
}

// One number out of a tensor, such as a gradient's part of the norm: cheapest while the tensor is
// in the cache.
bool is_sum(const Graph& g, const Node& n, const OpTable& table) {
  const Op* op = table.find(n);
  if (!op || !op->reduces || n.inputs.empty() || n.outputs.size() != 1) return false;
  const TypeInfo& t = g.value(n.outputs[0]).type;
  return t.concrete() && num_elements(t.concrete_shape()) == 1;
}

void move_early(Graph& g, const OpTable& table) {
  g.renumber();
  auto readers = g.consumers();
  std::map<std::string, std::vector<NodeId>> reads;
  for (size_t v = 0; v < g.values.size(); ++v)
    if (!g.values[v].state.empty())
      for (NodeId r : readers[v]) reads[g.values[v].state].push_back(r);
  std::vector<std::vector<NodeId>> behind(g.nodes.size());
  std::vector<char> moved(g.nodes.size(), 0);
  for (size_t k = 0; k < g.nodes.size(); ++k) {
    const Node& n = g.nodes[k];
    const bool update = update_form(n, table) != nullptr;
    if (!update && !is_sum(g, n, table)) continue;
    bool read = false;
    for (ValueId v : n.outputs) read |= update && v != kNone && !readers[size_t(v)].empty();
    NodeId after = earliest(g, n, NodeId(k), reads);
    // a state that another update reads is overwritten in the order of the file
    if (read || after < 0 || after >= NodeId(k) || moved[size_t(after)]) continue;
    behind[size_t(after)].push_back(NodeId(k));
    moved[k] = 1;
  }
  std::vector<Node> order;
  order.reserve(g.nodes.size());
  for (size_t k = 0; k < g.nodes.size(); ++k) {
    if (!moved[k]) order.push_back(std::move(g.nodes[k]));
    for (NodeId b : behind[k]) order.push_back(std::move(g.nodes[size_t(b)]));
  }
  g.nodes = std::move(order);
}

}  // namespace

void pass_group_updates(Graph& g, const PassContext& c) {
  Grouper(g, c.table).run();
  move_early(g, c.table);
}

}  // namespace onnxtrain
