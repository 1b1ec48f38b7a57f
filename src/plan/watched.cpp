// The first step that writes, and what it and those behind it read.
#include "plan/watched.hpp"

#include <algorithm>
#include <map>

#include "op/computed_input.hpp"

namespace onnxtrain {

namespace {

bool is_optimizer(const Node& n) { return n.domain == kTrainingDomain || n.domain == kOwnDomain; }

const Node* maker_of(const Graph& g, ValueId v) {
  const NodeId p = g.value(v).producer;
  return p < 0 ? nullptr : &g.nodes[size_t(p)];
}

// Of 16-bit weights: the optimizer reads wider copies of weight and gradient, and what it makes
// is cast back.
std::vector<ValueId> narrow_gradients(const Plan& plan) {
  const Graph& g = plan.graph;
  std::vector<ValueId> found;
  for (const Update& u : plan.updates) {
    const Node* cast = maker_of(g, u.value);
    const Node* n = cast && cast->is("Cast") ? maker_of(g, cast->inputs[0]) : nullptr;
    if (!n || !is_optimizer(*n)) continue;
    for (ValueId v : g.reads(*n))
      if (const Node* copy = maker_of(g, v);
          copy && copy->is("Cast") && maker_of(g, copy->inputs[0]) != nullptr)
        found.push_back(copy->inputs[0]);
  }
  return found;
}

// Those gradients are looked at in the step that makes them.
void find_narrow_steps(Plan& plan, std::map<ValueId, bool>& watched) {
  for (ValueId v : narrow_gradients(plan)) {
    const NodeId maker = plan.graph.value(v).producer;
    for (size_t k = 0; k < plan.first_write; ++k)
      if (plan.steps[k].node == maker) {
        plan.narrow.push_back({k, v});
        watched.erase(v);
        break;
      }
  }
  std::sort(plan.narrow.begin(), plan.narrow.end(),
            [](const auto& a, const auto& b) { return a.step < b.step; });
}

// The first step that writes over state; the number of steps when none does.
size_t first_write(const Plan& plan) {
  std::vector<char> in_place(plan.graph.values.size(), 0);
  for (const Update& u : plan.updates) in_place[size_t(u.value)] = u.in_place;
  for (size_t k = 0; k < plan.steps.size(); ++k)
    for (ValueId v : plan.graph.nodes[size_t(plan.steps[k].node)].outputs)
      if (v != kNone && in_place[size_t(v)]) return k;
  return plan.steps.size();
}

// Of integers, such as counters of steps, nothing has to be seen: they are always finite.
bool assigns_unseen(const Plan& plan, NodeId first) {
  return std::any_of(plan.updates.begin(), plan.updates.end(), [&](const Update& u) {
    const Slot& s = plan.slots[size_t(u.value)];
    const bool judged = s.place == Place::kDynamic || dtype_is_float(s.type.dtype);
    return judged && !u.in_place && plan.graph.value(u.value).producer >= first;
  });
}

}  // namespace

void find_watched(Plan& plan, const std::vector<char>& unsure) {
  const Graph& g = plan.graph;
  const size_t first = plan.first_write = first_write(plan);
  const NodeId end = first < plan.steps.size() ? plan.steps[first].node : NodeId(g.nodes.size());
  std::map<ValueId, bool> watched;
  auto watch = [&](ValueId v, bool gradient) {
    const Slot& s = plan.slots[size_t(v)];
    const bool computed =
        is_judged_input(g.value(v)) || (g.value(v).producer >= 0 && g.value(v).producer < end);
    if (computed && (s.place == Place::kDynamic || dtype_is_float(s.type.dtype)))
      watched[v] |= gradient;
  };
  for (size_t k = first; k < plan.steps.size(); ++k) {
    const Node& n = g.nodes[size_t(plan.steps[k].node)];
    for (ValueId v : g.reads(n)) watch(v, is_optimizer(n));
  }
  for (const Node& n : g.nodes) {  // updates that are looked at first: as if they wrote
    const bool update = std::any_of(n.outputs.begin(), n.outputs.end(),
                                    [&](ValueId v) { return v != kNone && unsure[size_t(v)]; });
    if (!update) continue;
    for (ValueId v : g.reads(n))
      if (!unsure[size_t(v)]) watch(v, is_optimizer(n));
  }
  for (const Update& u : plan.updates)
    if (!u.in_place) watch(u.value, false);
  plan.assigns_unseen = assigns_unseen(plan, end);
  find_narrow_steps(plan, watched);
  for (auto [v, gradient] : watched) plan.watched.push_back({v, gradient});
}

}  // namespace onnxtrain
