#include "engine/target_shapes.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace onnxtrain {

namespace {

bool is_elementwise(const Node& n) {
  return n.inputs.size() == 2 && (n.is("Sub") || n.is("Mul") || n.is("Add") || n.is("Div"));
}

bool is_one_number(const Graph& g, ValueId v) {
  const ValueDef& d = g.value(v);
  return d.constant.defined() && d.constant.size() == 1;
}

// Is it computed from constants alone? A weight of the loss is no output that a target is compared
// with.
bool is_constant(const Graph& g, ValueId v) {
  const ValueDef& d = g.value(v);
  if (d.constant.defined()) return true;
  if (d.producer < 0) return false;
  const std::vector<ValueId>& in = g.nodes[size_t(d.producer)].inputs;
  return std::all_of(in.begin(), in.end(),
                     [&](ValueId i) { return i == kNone || is_constant(g, i); });
}

// What `v`, a target or a target changed by a number, meets first.
void look_at(const Graph& g, ValueId v, const ValueDef& target, int hops) {
  for (const Node& n : g.nodes) {
    if (!is_elementwise(n) || std::find(n.inputs.begin(), n.inputs.end(), v) == n.inputs.end())
      continue;
    const ValueId other = n.inputs[0] == v ? n.inputs[1] : n.inputs[0];
    if (is_one_number(g, other)) {
      if (hops > 0) look_at(g, n.outputs[0], target, hops - 1);
      continue;
    }
    if (is_constant(g, other)) continue;
    const TypeInfo &have = target.type, &want = g.value(other).type;
    if (!have.concrete() || !want.concrete() || have.concrete_shape() == want.concrete_shape())
      continue;
    data_error("OT2111",
               cat("target '", target.name, "' has the shape ", to_string(have.concrete_shape()),
                   ", the output that it is compared with ", to_string(want.concrete_shape())),
               "give one target for every number of the output, in the same shape");
  }
}

}  // namespace

std::vector<std::string> elementwise_targets(const Model& m, const TrainingStep& step) {
  std::vector<std::string> names;
  const auto loss = m.metadata.find("onnxtrain.loss");
  if (loss == m.metadata.end()) return names;
  const char* kinds[] = {"mse", "l1", "huber", "bce", "bce_logits", "hinge", "kl"};
  if (std::none_of(std::begin(kinds), std::end(kinds),
                   [&](const char* k) { return loss->second == k; }))
    return names;
  for (ValueId v : step.algorithm.inputs)
    if (const ValueDef& d = step.algorithm.value(v); dtype_is_float(d.type.elem))
      names.push_back(d.name);
  return names;
}

void refuse_other_shapes(const Graph& g, const std::vector<std::string>& targets) {
  for (ValueId v : g.inputs)
    if (std::find(targets.begin(), targets.end(), g.value_name(v)) != targets.end())
      look_at(g, v, g.value(v), 2);
}

}  // namespace onnxtrain
