// Tracing of values that are not finite.
#include "engine/not_finite.hpp"

#include <algorithm>

#include "autodiff/autodiff.hpp"
#include "runtime/finite.hpp"

namespace onnxtrain {

NotFiniteTrace::NotFiniteTrace(const Plan& plan, const std::vector<Value>& inputs)
    : plan_(plan),
      kinds_(plan.graph.values.size(), 0),
      given_(plan.graph.values.size(), 0),
      step_(plan.graph.nodes.size(), 0) {
  for (const Step& s : plan.steps) step_[size_t(s.node)] = 1;
  for (size_t v = 0; v < plan.slots.size(); ++v) {
    const Slot& s = plan.slots[v];
    if (s.place == Place::kConstant) {
      kinds_[v] = not_finite(plan.graph.values[v].constant);
      given_[v] = 1;
    } else if (s.place == Place::kState && plan.graph.values[v].producer < 0) {
      kinds_[v] = not_finite(Tensor(s.type.dtype, s.type.shape, s.address, nullptr));
    }
  }
  for (size_t k = 0; k < inputs.size(); ++k)
    if (const Tensor* t = std::get_if<Tensor>(&inputs[k]))
      kinds_[size_t(plan.graph.inputs[k])] = not_finite(*t);
}

ValueId NotFiniteTrace::real(ValueId v) const {
  for (;;) {
    NodeId p = plan_.graph.value(v).producer;
    if (p < 0 || step_[size_t(p)]) return v;
    const Node& n = plan_.graph.nodes[size_t(p)];
    v = n.inputs[size_t(all_ops().get(n).view_of)];
  }
}

void NotFiniteTrace::record(const Step& s, ValueId v, const Tensor& t) {
  unsigned kind = kinds_[size_t(v)] = not_finite(t);
  if (!kind) return;
  unsigned from_given = 0, others = 0;
  for (ValueId x : plan_.graph.reads(plan_.graph.nodes[size_t(s.node)])) {
    ValueId r = real(x);
    (given_[size_t(r)] ? from_given : others) |= kinds_[size_t(r)];
  }
  given_[size_t(v)] = others == 0 && (kind & ~from_given) == 0;
}

std::string NotFiniteTrace::describe(ValueId v) const {
  const ValueDef& d = plan_.graph.value(v);
  if (!d.state.empty() && d.producer < 0)
    return cat("state variable '", d.state, "', before the step");
  if (d.producer < 0) return cat("input '", d.name, "'");
  const Node& n = plan_.graph.nodes[size_t(d.producer)];
  if (const size_t at = n.name.find(kGradientMark); at != std::string::npos)
    return cat("'", d.name, "' in the gradient of node '", n.name.substr(0, at), "'");
  std::string node = n.name.empty() ? n.label() : cat("'", n.name, "' (", n.op, ")");
  return cat("output '", d.name, "' of ", node);
}

ValueId NotFiniteTrace::first_bad(ValueId loss) const {
  if (loss != kNone && kinds_[size_t(real(loss))]) return loss;
  for (const auto& [step, v] : plan_.narrow)
    if (kinds_[size_t(real(v))]) return v;
  for (const auto& [v, gradient] : plan_.watched)
    if (kinds_[size_t(real(v))]) return v;
  return kNone;
}

std::string NotFiniteTrace::name(ValueId bad) const {
  const Graph& g = plan_.graph;
  for (const Update& u : plan_.updates) {
    const NodeId p = g.value(u.value).producer;
    if (p < 0) continue;
    const Node& n = g.nodes[size_t(p)];
    const bool optimizer = n.domain == kTrainingDomain || n.domain == kOwnDomain;
    if (!optimizer && u.value == bad) return u.state;
    if (!optimizer || n.outputs[0] != u.value) continue;
    const auto read = g.reads(n);
    if (std::find(read.begin(), read.end(), bad) != read.end() ||
        std::find(n.outputs.begin(), n.outputs.end(), bad) != n.outputs.end())
      return u.state + "_grad";
  }
  return g.value_name(bad);
}

std::string NotFiniteTrace::origin(ValueId bad) const {
  ValueId at = real(bad);
  for (NodeId p; (p = plan_.graph.value(at).producer) >= 0;) {
    // NaN and +inf first: -inf is often a mask or the logarithm of nothing, and harmless
    ValueId next = kNone;
    bool next_strong = false;
    for (ValueId x : plan_.graph.reads(plan_.graph.nodes[size_t(p)])) {
      ValueId r = real(x);
      unsigned kind = kinds_[size_t(r)];
      if (!kind || given_[size_t(r)]) continue;
      bool strong = (kind & (kHasNan | kHasPlusInf)) != 0;
      if (next == kNone || (strong && !next_strong)) {
        next = r;
        next_strong = strong;
      }
    }
    if (next == kNone) break;
    at = next;
  }
  return describe(at) + from_constant(at);
}

// The constant of the file that makes it NaN, if one does.
std::string NotFiniteTrace::from_constant(ValueId at) const {
  NodeId reader = -1;
  for (NodeId p; (p = plan_.graph.value(at).producer) >= 0; reader = p) {
    ValueId next = kNone;
    for (ValueId x : plan_.graph.reads(plan_.graph.nodes[size_t(p)])) {
      const ValueId r = real(x);
      if (given_[size_t(r)] && (kinds_[size_t(r)] & kHasNan) != 0) next = r;
    }
    if (next == kNone) return {};
    at = next;
  }
  if (reader < 0) return {};
  return cat("; it comes from constant '", plan_.graph.value_name(at), "', which holds NaN and is ",
             "read by ", plan_.graph.nodes[size_t(reader)].label());
}

}  // namespace onnxtrain
