// Editing and checking of graphs.
#include "graph/graph.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace onnxtrain {

namespace {

template <class T>
const T& attr_as(const Node& n, std::string_view key, const Attr& a, const char* want) {
  if (const T* v = std::get_if<T>(&a)) return *v;
  model_error("OT1106", cat("attribute '", key, "' of ", n.label(), " is not ", want));
}

void collect_reads(const Node& n, std::vector<ValueId>& out) {
  for (ValueId v : n.inputs)
    if (v != kNone) out.push_back(v);
  for (const auto& [key, a] : n.attrs)
    if (const GraphPtr* g = std::get_if<GraphPtr>(&a))
      for (const auto& c : (*g)->captures) out.push_back(c.outer);
}

}  // namespace

int64_t Node::i(std::string_view key, int64_t def) const {
  const Attr* a = find(key);
  return a ? attr_as<int64_t>(*this, key, *a, "an integer") : def;
}
float Node::f(std::string_view key, float def) const {
  const Attr* a = find(key);
  return a ? attr_as<float>(*this, key, *a, "a float") : def;
}
std::string Node::s(std::string_view key, std::string_view def) const {
  const Attr* a = find(key);
  return a ? attr_as<std::string>(*this, key, *a, "a string") : std::string(def);
}
std::vector<int64_t> Node::ints(std::string_view key, std::vector<int64_t> def) const {
  const Attr* a = find(key);
  if (!a) return def;
  return attr_as<std::vector<int64_t>>(*this, key, *a, "a list of integers");
}
std::vector<float> Node::floats(std::string_view key, std::vector<float> def) const {
  const Attr* a = find(key);
  if (!a) return def;
  return attr_as<std::vector<float>>(*this, key, *a, "a list of floats");
}
std::vector<std::string> Node::strings(std::string_view key) const {
  const Attr* a = find(key);
  return a ? attr_as<std::vector<std::string>>(*this, key, *a, "a list of strings")
           : std::vector<std::string>{};
}
const Tensor* Node::tensor(std::string_view key) const {
  const Attr* a = find(key);
  return a ? &attr_as<Tensor>(*this, key, *a, "a tensor") : nullptr;
}
GraphPtr Node::graph(std::string_view key) const {
  const Attr* a = find(key);
  return a ? attr_as<GraphPtr>(*this, key, *a, "a graph") : nullptr;
}

std::string Node::label() const {
  return name.empty() ? cat("a node of type ", op) : cat("node '", name, "' (", op, ")");
}

ValueId Graph::add_value(std::string value_name, TypeInfo type) {
  ValueDef d;
  d.name = std::move(value_name);
  d.type = std::move(type);
  values.push_back(std::move(d));
  return ValueId(values.size() - 1);
}

ValueId Graph::add_constant(Tensor t, std::string value_name) {
  TypeInfo type = TypeInfo::tensor(t.dtype(), t.shape());
  if (value_name.empty()) value_name = unique_name("const");
  ValueId v = add_value(std::move(value_name), std::move(type));
  values[size_t(v)].constant = std::move(t);
  return v;
}

std::vector<ValueId> Graph::add_node(Node node, int count, std::string_view hint) {
  NodeId id = NodeId(nodes.size());
  node.outputs.clear();
  for (int k = 0; k < count; ++k) {
    ValueId v = add_value(unique_name(hint.empty() ? std::string_view(node.op) : hint));
    values[size_t(v)].producer = id;
    node.outputs.push_back(v);
  }
  std::vector<ValueId> outs = node.outputs;
  nodes.push_back(std::move(node));
  return outs;
}

ValueId Graph::find(std::string_view value_name) const {
  for (size_t k = 0; k < values.size(); ++k)
    if (values[k].name == value_name) return ValueId(k);
  return kNone;
}

std::string Graph::unique_name(std::string_view hint) {
  if (name_counts_.empty())
    for (const auto& v : values) name_counts_.emplace(v.name, 0);
  std::string base(hint);
  int& n = name_counts_[base];
  for (;;) {
    std::string candidate = base + "_" + std::to_string(++n);
    if (name_counts_.emplace(candidate, 0).second) return candidate;
  }
}

std::vector<ValueId> Graph::reads(const Node& n) const {
  std::vector<ValueId> out;
  collect_reads(n, out);
  return out;
}

std::vector<std::vector<NodeId>> Graph::consumers() const {
  std::vector<std::vector<NodeId>> c(values.size());
  for (size_t k = 0; k < nodes.size(); ++k)
    for (ValueId v : reads(nodes[k]))
      if (c[size_t(v)].empty() || c[size_t(v)].back() != NodeId(k))
        c[size_t(v)].push_back(NodeId(k));
  return c;
}

void Graph::replace_uses(ValueId from, ValueId to) {
  for (Node& n : nodes) {
    for (ValueId& v : n.inputs)
      if (v == from) v = to;
    for (auto& [key, a] : n.attrs)
      if (GraphPtr* g = std::get_if<GraphPtr>(&a))
        for (auto& c : (*g)->captures)
          if (c.outer == from) c.outer = to;
  }
  for (ValueId& v : outputs)
    if (v == from) v = to;
}

void Graph::remove_dead(const std::vector<ValueId>& keep) {
  std::vector<char> needed(values.size(), 0);
  for (ValueId v : outputs)
    if (v != kNone) needed[size_t(v)] = 1;
  for (ValueId v : keep)
    if (v != kNone) needed[size_t(v)] = 1;
  std::vector<char> live(nodes.size(), 0);
  for (size_t k = nodes.size(); k-- > 0;) {
    for (ValueId v : nodes[k].outputs)
      if (v != kNone && needed[size_t(v)]) live[k] = 1;
    if (live[k])
      for (ValueId v : reads(nodes[k])) needed[size_t(v)] = 1;
  }
  size_t w = 0;
  for (size_t k = 0; k < nodes.size(); ++k)
    if (live[k]) {
      if (w != k) nodes[w] = std::move(nodes[k]);
      ++w;
    }
  nodes.resize(w);
  renumber();
}

Graph Graph::clone() const {
  Graph g = *this;
  for (Node& n : g.nodes)
    for (auto& [key, a] : n.attrs)
      if (GraphPtr* sub = std::get_if<GraphPtr>(&a))
        *sub = std::make_shared<Graph>((*sub)->clone());
  return g;
}

std::vector<ValueId> Graph::append(const Graph& sub, const std::vector<ValueId>& sub_inputs,
                                   const std::vector<ValueId>& sub_captures) {
  OT_ASSERT(sub_inputs.size() == sub.inputs.size() && sub_captures.size() == sub.captures.size());
  Graph copy = sub.clone();
  std::vector<ValueId> to(copy.values.size(), kNone);
  for (size_t k = 0; k < sub_inputs.size(); ++k) to[size_t(copy.inputs[k])] = sub_inputs[k];
  for (size_t k = 0; k < sub_captures.size(); ++k)
    to[size_t(copy.captures[k].inner)] = sub_captures[k];
  for (size_t k = 0; k < copy.values.size(); ++k) {
    if (to[k] != kNone) continue;
    ValueDef d = std::move(copy.values[k]);
    d.name = unique_name(d.name.empty() ? "value" : d.name);
    to[k] = ValueId(values.size());
    values.push_back(std::move(d));
  }
  auto map = [&](ValueId v) { return v == kNone ? kNone : to[size_t(v)]; };
  for (Node& n : copy.nodes) {
    for (ValueId& v : n.inputs) v = map(v);
    for (ValueId& v : n.outputs) {
      v = map(v);
      if (v != kNone) values[size_t(v)].producer = NodeId(nodes.size());
    }
    for (auto& [key, a] : n.attrs)
      if (GraphPtr* g = std::get_if<GraphPtr>(&a))
        for (auto& c : (*g)->captures) c.outer = map(c.outer);
    nodes.push_back(std::move(n));
  }
  std::vector<ValueId> out;
  for (ValueId v : copy.outputs) out.push_back(map(v));
  return out;
}

NodeId Graph::producer_of(ValueId v) const {
  for (size_t k = nodes.size(); k-- > 0;)
    if (std::find(nodes[k].outputs.begin(), nodes[k].outputs.end(), v) != nodes[k].outputs.end())
      return NodeId(k);
  return -1;
}

void Graph::renumber() {
  for (auto& v : values) v.producer = -1;
  for (size_t k = 0; k < nodes.size(); ++k)
    for (ValueId v : nodes[k].outputs)
      if (v != kNone) values[size_t(v)].producer = NodeId(k);
}

void Graph::sort() {
  renumber();
  std::vector<int> waiting(nodes.size(), 0);
  std::vector<std::vector<NodeId>> users(nodes.size());
  for (size_t k = 0; k < nodes.size(); ++k)
    for (ValueId v : reads(nodes[k])) {
      NodeId p = values[size_t(v)].producer;
      if (p >= 0) {
        users[size_t(p)].push_back(NodeId(k));
        ++waiting[k];
      }
    }
  // smallest original index first keeps the order stable
  std::vector<NodeId> heap, order;
  auto later = [](NodeId a, NodeId b) { return a > b; };
  for (size_t k = 0; k < nodes.size(); ++k)
    if (!waiting[k]) heap.push_back(NodeId(k));
  std::make_heap(heap.begin(), heap.end(), later);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    NodeId k = heap.back();
    heap.pop_back();
    order.push_back(k);
    for (NodeId u : users[size_t(k)])
      if (--waiting[size_t(u)] == 0) {
        heap.push_back(u);
        std::push_heap(heap.begin(), heap.end(), later);
      }
  }
  if (order.size() != nodes.size()) {
    for (size_t k = 0; k < nodes.size(); ++k)
      if (waiting[k])
        model_error("OT1110", cat("the graph '", name, "' has a cycle through ", nodes[k].label()));
  }
  std::vector<Node> sorted;
  sorted.reserve(nodes.size());
  for (NodeId k : order) sorted.push_back(std::move(nodes[size_t(k)]));
  nodes = std::move(sorted);
  renumber();
}

std::string Graph::damage() const {
  auto in_range = [&](ValueId v) { return v >= 0 && size_t(v) < values.size(); };
  for (ValueId v : inputs)
    if (!in_range(v)) return "an input is out of range";
  for (const Capture& c : captures)
    if (!in_range(c.inner)) return "a capture stands for a value out of range";
  std::vector<char> defined(values.size(), 0);
  for (size_t k = 0; k < values.size(); ++k) {
    const NodeId p = values[k].producer;
    if (p >= NodeId(nodes.size()))
      return "the producer of '" + values[k].name + "' is out of range";
    // what no node makes comes from outside: not always a listed input (training algorithms read
    // values of the main graph)
    defined[k] = p < 0;
    if (p >= 0 && (values[k].constant.defined() || !values[k].state.empty()))
      return "'" + values[k].name + "' is a constant or state, and is made";
  }
  for (size_t k = 0; k < nodes.size(); ++k) {
    const Node& n = nodes[k];
    for (ValueId v : reads(n)) {
      if (!in_range(v)) return n.label() + " reads a value out of range";
      if (!defined[size_t(v)]) return n.label() + " reads '" + value_name(v) + "' too early";
    }
    for (ValueId v : n.outputs) {
      if (v == kNone) continue;
      if (!in_range(v) || values[size_t(v)].producer != NodeId(k))
        return n.label() + " has an output with another producer";
      if (defined[size_t(v)]) return "'" + value_name(v) + "' is assigned twice";
      defined[size_t(v)] = 1;
    }
    for (const auto& [key, a] : n.attrs)
      if (const GraphPtr* sub = std::get_if<GraphPtr>(&a))
        if (std::string inner = (*sub)->damage(); !inner.empty())
          return cat("in '", key, "' of ", n.label(), ": ", inner);
  }
  for (size_t k = 0; k < values.size(); ++k)
    if (values[k].producer >= 0 && !defined[k])
      return "'" + values[k].name + "' has a producer that does not make it";
  for (ValueId v : outputs)
    if (!in_range(v) || !defined[size_t(v)]) return "an output is undefined";
  return {};
}

void Graph::verify(const char* after) const {
  const std::string what = damage();
  if (what.empty()) return;
  std::fprintf(stderr, "onnxtrain: graph '%s' is broken after %s: %s\n", name.c_str(), after,
               what.c_str());
  std::abort();
}

}  // namespace onnxtrain
