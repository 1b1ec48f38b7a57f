// What lies between xs and ys: dependence, lowering of what has no rule, and words for errors.
#include "autodiff/path.hpp"

#include <algorithm>
#include <deque>

#include "op/carries.hpp"
#include "op/grad_builder.hpp"
#include "op/identity_node.hpp"

namespace onnxtrain {

namespace {

// Per value: is one of ys computed from it?
std::vector<char> leads_to(const Graph& g, const std::vector<ValueId>& ys) {
  std::vector<char> need(g.values.size(), 0);
  for (ValueId y : ys) need[size_t(y)] = 1;
  for (size_t k = g.nodes.size(); k-- > 0;) {
    const Node& n = g.nodes[k];
    bool any = std::any_of(n.outputs.begin(), n.outputs.end(),
                           [&](ValueId v) { return v != kNone && need[size_t(v)]; });
    if (any)
      for (ValueId v : g.reads(n)) need[size_t(v)] = 1;
  }
  return need;
}

void keep_number(Graph& g, ValueId made, ValueId output, int opset) {
  TypeInfo& t = g.value(output).type;
  if (!t.is_tensor() || !t.shape) t = g.value(made).type;
  g.nodes.push_back(identity_node(g, made, output, opset));
}

bool needs_form(const Op* op) { return op && op->lower && (!op->grad || op->keeps_values); }

// Appends the node's form in standard operators; its outputs keep their numbers.
void lower_node(Graph& g, const OpTable& table, const Node& n, const Op& op, int opset) {
  GradBuilder b(g, table, n, {}, opset);
  b.set_differentiate(&differentiate);
  std::vector<ValueId> made;
  try {
    made = op.lower(b);
  } catch (Error& e) {
    e.add_place("in the gradient of " + n.label());
    throw;
  }
  for (size_t k = 0; k < n.outputs.size(); ++k)
    if (n.outputs[k] != kNone) keep_number(g, made.at(k), n.outputs[k], opset);
}

// Nodes that gradients() adds behind the model's own outputs are not the user's.
bool is_added(const std::string& name) { return name.starts_with("onnxtrain.gradients"); }

}  // namespace

std::vector<char> depends_on(const Graph& g, const std::vector<ValueId>& xs) {
  std::vector<char> active(g.values.size(), 0);
  for (ValueId x : xs) active[size_t(x)] = 1;
  for (const Node& n : g.nodes) {
    bool any = false;
    for (ValueId v : g.reads(n)) any |= active[size_t(v)] != 0;
    if (!any) continue;
    for (ValueId v : n.outputs)
      if (v != kNone && (carries_gradient(g.value(v).type) || n.is("QuantizeLinear")))
        active[size_t(v)] = 1;
  }
  return active;
}

void lower_between(Graph& g, const OpTable& table, const std::vector<ValueId>& ys,
                   const std::vector<ValueId>& xs, int opset) {
  for (bool any = true; any;) {
    any = false;
    if (std::none_of(g.nodes.begin(), g.nodes.end(),
                     [&](const Node& n) { return needs_form(table.find(n)); }))
      return;
    std::vector<char> active = depends_on(g, xs), need = leads_to(g, ys);
    auto on_path = [&](ValueId v) { return v != kNone && active[size_t(v)] && need[size_t(v)]; };
    std::vector<Node> old = std::move(g.nodes);
    g.nodes.clear();
    for (Node& n : old) {
      const Op* op = table.find(n);
      bool between = needs_form(op) &&
                     (op->keeps_values ? on_path(n.outputs.back())
                                       : std::any_of(n.outputs.begin(), n.outputs.end(), on_path));
      if (between)
        lower_node(g, table, n, *op, opset);
      else
        g.nodes.push_back(std::move(n));
      any |= between;
    }
    g.renumber();
  }
}

std::string path_text(const Graph& g, size_t node, const std::vector<char>& active,
                      const std::vector<ValueId>& ys) {
  auto is_active = [&](ValueId v) {
    return v != kNone && size_t(v) < active.size() && active[size_t(v)];
  };
  // breadth first over values; from[v]: the value before it
  std::vector<ValueId> from(active.size(), kNone), order;
  std::vector<std::vector<NodeId>> users = g.consumers();
  std::vector<char> seen(active.size(), 0);
  for (ValueId v : g.nodes[node].outputs)
    if (is_active(v)) order.push_back(v), seen[size_t(v)] = 1;
  ValueId end = kNone;
  for (size_t k = 0; k < order.size() && end == kNone; ++k) {
    ValueId v = order[k];
    if (std::find(ys.begin(), ys.end(), v) != ys.end()) end = v;
    for (NodeId u : users[size_t(v)])
      for (ValueId w : g.nodes[size_t(u)].outputs)
        if (is_active(w) && !seen[size_t(w)]) {
          seen[size_t(w)] = 1;
          from[size_t(w)] = v;
          order.push_back(w);
        }
  }
  std::deque<ValueId> way;
  for (ValueId v = end; v != kNone; v = from[size_t(v)]) way.push_front(v);
  while (way.size() > 1 && is_added(g.value_name(way.back()))) way.pop_back();
  std::string text;
  for (ValueId v : g.reads(g.nodes[node]))
    if (is_active(v)) {
      text = g.value_name(v) + " -> ";
      break;
    }
  text += g.nodes[node].name;
  for (size_t k = 1; k < way.size(); ++k)
    text += " -> " + g.nodes[size_t(g.producer_of(way[k]))].name;
  return way.empty() ? text : text + " -> output '" + g.value_name(way.back()) + "'";
}

}  // namespace onnxtrain
