// What the recognisers of operators read a graph with: producers, sole readers, numbers.
#pragma once
#include <cmath>

#include "passes/passes.hpp"

namespace onnxtrain {

class Chains {
 public:
  Chains(Graph& g, const std::vector<ValueId>& keep) : g_(g), readers_(g.consumers()) {
    fixed_.assign(g.values.size(), 0);
    for (ValueId v : g.outputs) fixed_[size_t(v)] = 1;
    for (ValueId v : keep) fixed_[size_t(v)] = 1;
    fed_.assign(g.values.size(), 0);
    for (ValueId v : g.inputs) fed_[size_t(v)] = 1;
    g.renumber();
    find_learned();
  }

  Graph& graph() const { return g_; }
  const Node& node(NodeId k) const { return g_.nodes[size_t(k)]; }
  const Node* producer(ValueId v) const {
    NodeId k = v == kNone ? -1 : g_.value(v).producer;
    return k < 0 ? nullptr : &g_.nodes[size_t(k)];
  }
  bool fixed(ValueId v) const { return fixed_[size_t(v)] != 0; }
  // It depends on something that a gradient is asked for.
  bool learned(ValueId v) const { return learned_[size_t(v)] != 0; }
  const std::vector<NodeId>& readers(ValueId v) const { return readers_[size_t(v)]; }
  // The one reader of a value that nothing else needs.
  NodeId reader(ValueId v) const {
    const auto& r = readers_[size_t(v)];
    return !fixed(v) && r.size() == 1 ? r[0] : -1;
  }
  // A value that never changes (a graph's input may, beside its initializer) and that no gradient
  // is asked for.
  const Tensor* constant(ValueId v) const {
    const bool known = v != kNone && g_.value(v).is_constant() && !learned(v) && !fed_[size_t(v)];
    return known ? &g_.value(v).constant : nullptr;
  }
  bool number(ValueId v, double& out) const {
    const Tensor* t = constant(v);
    if (!t || t->size() != 1 || !dtype_is_float(t->dtype())) return false;
    out = t->to_doubles()[0];
    return true;
  }
  ValueId other(const Node& n, ValueId v) const {
    if (n.inputs.size() != 2 || n.inputs[0] == n.inputs[1]) return kNone;
    return n.inputs[0] == v ? n.inputs[1] : n.inputs[1] == v ? n.inputs[0] : kNone;
  }
  // The shape of a float32 (or other) tensor, empty pointer where it is not known.
  bool known(ValueId v, DType t, Shape& shape) const {
    if (v == kNone) return false;
    const TypeInfo& type = g_.value(v).type;
    if (!type.concrete() || type.elem != t) return false;
    shape = type.concrete_shape();
    return true;
  }
  bool same_type(ValueId a, ValueId b) const {
    const TypeInfo &s = g_.value(a).type, &t = g_.value(b).type;
    return s.concrete() && t.concrete() && s.elem == t.elem &&
           s.concrete_shape() == t.concrete_shape();
  }
  // v = x * c or x / c with a number c; the factor.
  ValueId scaled(ValueId v, double& factor) const {
    const Node* n = producer(v);
    if (!n || !(n->is("Mul") || n->is("Div")) || n->inputs.size() != 2 || n->version < 7)
      return kNone;
    double c = 0;
    if (number(n->inputs[1], c) && same_type(n->inputs[0], v)) {
      factor = n->is("Mul") ? c : 1 / c;
      return n->inputs[0];
    }
    if (n->is("Mul") && number(n->inputs[0], c) && same_type(n->inputs[1], v)) {
      factor = c;
      return n->inputs[1];
    }
    return kNone;
  }
  // v without the numbers it is multiplied by.
  ValueId unscaled(ValueId v, double& factor) const {
    double c = 1;
    for (ValueId x = scaled(v, c); x != kNone && !fixed(v); x = scaled(v, c)) {
      factor *= c;
      v = x;
    }
    return v;
  }
  // Node k becomes another one with the same outputs.
  Node& replace(NodeId k, const char* op, int version, std::vector<ValueId> inputs) {
    Node n;
    n.op = op;
    n.version = version;
    n.name = node(k).name;
    n.inputs = std::move(inputs);
    n.outputs = node(k).outputs;
    return g_.nodes[size_t(k)] = std::move(n);
  }

 private:
  void find_learned() {
    learned_.assign(g_.values.size(), 0);
    for (const Node& n : g_.nodes) {
      if (!n.is("Gradient", kTrainingDomain)) continue;
      const size_t xs = n.strings("xs").size(), half = n.inputs.size() / 2;  // xs, zs twice, then y
      for (size_t k = 0; k < xs && half + k < n.inputs.size(); ++k)
        learned_[size_t(n.inputs[k])] = learned_[size_t(n.inputs[half + k])] = 1;
    }
    for (const Node& n : g_.nodes) {
      bool from = false;
      for (ValueId v : g_.reads(n)) from |= learned(v);
      for (ValueId v : n.outputs)
        if (from && v != kNone) learned_[size_t(v)] = 1;
    }
  }

  Graph& g_;
  std::vector<std::vector<NodeId>> readers_;
  std::vector<char> fixed_, learned_, fed_;
};

// softmax -> FusedAttention where that wins (recognise_attention.cpp).
bool recognise_attention(Chains& c, NodeId softmax);
// Some gradient is differentiated again.
bool second_derivatives(const Graph& g);

}  // namespace onnxtrain
