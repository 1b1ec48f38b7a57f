// The Gradient operator of ai.onnx.preview.training.
#include <map>

#include "autodiff/autodiff.hpp"
#include "autodiff/bodies.hpp"
#include "op/grad_builder.hpp"
#include "op/identity_node.hpp"

namespace onnxtrain {

namespace {

bool is_gradient(const Node& n) { return n.is("Gradient", kTrainingDomain); }

struct Operands {
  std::vector<ValueId> given;  // values at which to differentiate: xs then zs
  std::vector<ValueId> named;  // the tensors named by xs and zs
  ValueId y = kNone;
  size_t xs = 0;
};

Operands operands(const Node& n) {
  Operands o;
  o.xs = n.strings("xs").size();
  size_t count = o.xs + n.strings("zs").size();
  OT_ASSERT(n.inputs.size() == 2 * count + 1);
  o.given.assign(n.inputs.begin(), n.inputs.begin() + long(count));
  o.named.assign(n.inputs.begin() + long(count), n.inputs.begin() + long(2 * count));
  o.y = n.inputs.back();
  return o;
}

// Copies the nodes between the named tensors and y with the named tensors replaced by the given
// values; returns the copy of y.
ValueId reevaluate(Graph& g, const Operands& o) {
  std::map<ValueId, ValueId> to;
  for (size_t k = 0; k < o.named.size(); ++k) to[o.named[k]] = o.given[k];
  size_t count = g.nodes.size();
  // nodes on a path to y
  std::vector<char> need(g.values.size(), 0);
  std::vector<char> take(count, 0);
  need[size_t(o.y)] = 1;
  for (size_t k = count; k-- > 0;) {
    for (ValueId v : g.nodes[k].outputs)
      if (v != kNone && need[size_t(v)] && !to.count(v)) take[k] = 1;
    if (take[k])
      for (ValueId v : g.reads(g.nodes[k])) need[size_t(v)] = 1;
  }
  for (size_t k = 0; k < count; ++k) {
    if (!take[k]) continue;
    bool changed = false;
    for (ValueId v : g.reads(g.nodes[k])) changed |= to.count(v) != 0;
    if (!changed) continue;
    Node n = g.nodes[k];
    for (ValueId& v : n.inputs)
      if (auto it = to.find(v); it != to.end()) v = it->second;
    for (auto& [key, a] : n.attrs)
      if (GraphPtr* sub = std::get_if<GraphPtr>(&a)) {
        auto copy = std::make_shared<Graph>((*sub)->clone());
        for (auto& c : copy->captures)
          if (auto it = to.find(c.outer); it != to.end()) c.outer = it->second;
        *sub = copy;
      }
    std::vector<ValueId> old = n.outputs;
    n.name = n.name + "_at";
    std::vector<ValueId> fresh = g.add_node(std::move(n), int(old.size()));
    for (size_t i = 0; i < old.size(); ++i) {
      if (old[i] == kNone) {
        g.nodes.back().outputs[i] = kNone;
        continue;
      }
      g.value(fresh[i]).type = g.value(old[i]).type;
      to[old[i]] = fresh[i];
    }
  }
  auto it = to.find(o.y);
  return it == to.end() ? o.y : it->second;
}

void expand(Graph& g, const Node& n, const OpTable& table, int opset) {
  Operands o = operands(n);
  ValueId y = o.given == o.named ? o.y : reevaluate(g, o);
  std::vector<ValueId> xs(o.given.begin(), o.given.begin() + long(o.xs));
  std::vector<ValueId> wanted;
  for (size_t k = 0; k < n.outputs.size() && k < xs.size(); ++k)
    if (n.outputs[k] != kNone) wanted.push_back(xs[k]);
  std::vector<ValueId> grads;
  try {
    grads = differentiate(g, table, {y}, {}, wanted, opset);
  } catch (Error& e) {
    e.add_place("in " + n.label());
    throw;
  }
  GradBuilder b(g, table, n, {}, opset);
  size_t w = 0;
  for (size_t k = 0; k < n.outputs.size() && k < xs.size(); ++k) {
    if (n.outputs[k] == kNone) continue;
    ValueId d = grads[w++];
    if (d == kNone) d = b.zeros_like(xs[k]);
    // the node's output keeps its number: other nodes and bindings refer to it
    g.value(n.outputs[k]).type = g.value(xs[k]).type;
    g.nodes.push_back(identity_node(g, d, n.outputs[k], opset));
  }
}

bool has_gradient(const Graph& g) {
  for (const Node& n : g.nodes) {
    if (is_gradient(n)) return true;
    for (const auto& [key, a] : n.attrs)
      if (const GraphPtr* sub = std::get_if<GraphPtr>(&a); sub && has_gradient(**sub)) return true;
  }
  return false;
}

void resolve_names(Graph& g) {
  for (Node& n : g.nodes) {
    for (auto& [key, a] : n.attrs)  // names in a body are those of the body and what it captures
      if (GraphPtr* sub = std::get_if<GraphPtr>(&a); sub && has_gradient(**sub)) {
        auto copy = std::make_shared<Graph>((*sub)->clone());
        resolve_names(*copy);
        *sub = copy;
      }
    if (!is_gradient(n) || n.has("resolved")) continue;
    std::vector<std::string> names = n.strings("xs"), zs = n.strings("zs");
    names.insert(names.end(), zs.begin(), zs.end());
    if (n.inputs.size() != names.size())
      model_error("OT1313", cat(n.label(), " has ", n.inputs.size(), " inputs, xs and zs name ",
                                names.size()));
    names.push_back(n.s("y", ""));
    for (const std::string& name : names) {
      ValueId v = g.find(name);
      if (v == kNone)
        model_error("OT1315", cat(n.label(), " names a tensor '", name,
                                  "' that does not exist at that point"));
      n.inputs.push_back(v);
    }
    n.attrs["resolved"] = int64_t(1);
  }
}

}  // namespace

void resolve_gradients(Graph& g) {
  resolve_names(g);
  bring_ways_into_bodies(g);
}

bool expand_gradients(Graph& g, const OpTable& table, int opset) {
  // Each order has several times the nodes of the one before.
  constexpr size_t kMost = 30'000, kTimes = 20;
  bool any = false;
  for (const Node& n : g.nodes) any |= is_gradient(n);
  if (!any) return false;
  const size_t most = kMost + kTimes * g.nodes.size();
  std::vector<Node> old = std::move(g.nodes);
  g.nodes.clear();
  for (Node& n : old) {
    if (is_gradient(n)) {
      expand(g, n, table, opset);
      if (g.nodes.size() > most)
        model_error("OT1003",
                    cat("the gradients of gradients grow to ", g.nodes.size(), " nodes with ",
                        n.label(), ", allowed are ", most),
                    "fewer Gradient nodes that differentiate each other");
    } else {
      g.nodes.push_back(std::move(n));
    }
  }
  g.renumber();
  return true;
}

}  // namespace onnxtrain
