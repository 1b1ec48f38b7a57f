// From the updates of a plan back to gradients.
#include "engine/update_gradients.hpp"

#include <algorithm>

namespace onnxtrain {

namespace {

const Node* maker_of(const Graph& g, ValueId v) {
  const NodeId p = v == kNone ? -1 : g.value(v).producer;
  return p < 0 ? nullptr : &g.nodes[size_t(p)];
}

bool ran(const Plan& plan, NodeId node) {
  for (size_t k = 0; k < plan.first_write; ++k)
    if (plan.steps[k].node == node) return true;
  return false;
}

}  // namespace

void show_gradients(const Plan& plan, const GradientReader& read) {
  const Graph& g = plan.graph;
  for (const Update& u : plan.updates) {
    ValueId made = u.value;
    const Node* n = maker_of(g, made);
    if (n && n->is("Cast")) {  // of 16-bit weights
      made = n->inputs[0];
      n = maker_of(g, made);
    }
    const Op* op = n ? all_ops().find(*n) : nullptr;
    if (!op || !op->update) continue;
    const auto first = size_t(op->update->scalars), kinds = 2 + size_t(op->update->states);
    if (n->inputs.size() < first + kinds) continue;
    // all X, all G, all of the first state, ...; the first outputs are the weights
    const size_t weights = std::max<size_t>(1, (n->inputs.size() - first) / kinds);
    const auto at =
        size_t(std::find(n->outputs.begin(), n->outputs.end(), made) - n->outputs.begin());
    if (at >= weights) continue;
    ValueId v = n->inputs[first + weights + at];
    if (const Node* cast = maker_of(g, v);
        cast && cast->is("Cast") && !ran(plan, g.value(v).producer))
      v = cast->inputs[0];
    const Slot& s = plan.slots[size_t(v)];
    if (s.place == Place::kDynamic || s.place == Place::kNone || !s.address) continue;
    read(u.state, Tensor(s.type.dtype, s.type.shape, s.address, nullptr));
  }
}

}  // namespace onnxtrain
