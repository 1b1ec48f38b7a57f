// Groups and sums.
#include "passes/live_groups.hpp"

namespace onnxtrain {

bool is_planned(const Graph& g, ValueId v) {
  const ValueDef& d = g.value(v);
  return d.producer >= 0 && d.type.concrete() && d.type.elem != DType::kString;
}

LiveGroups::LiveGroups(const Graph& g, const OpTable& table)
    : of_(g.values.size(), -1), view_(g.nodes.size(), 0) {
  for (size_t k = 0; k < g.nodes.size(); ++k) {
    const Node& n = g.nodes[k];
    const Op* op = table.find(n);
    if (op && op->view_of >= 0 && n.outputs[0] != kNone) {
      const int group = of(n.inputs[size_t(op->view_of)]);
      of_[size_t(n.outputs[0])] = group;
      view_[k] = group >= 0;
      if (group >= 0) continue;
    }
    for (ValueId v : n.outputs) {
      if (v == kNone || !is_planned(g, v)) continue;
      of_[size_t(v)] = int(groups.size());
      const TypeInfo& t = g.value(v).type;
      LiveGroup group;
      group.first = int(k);
      group.bytes = size_t(num_elements(t.concrete_shape())) * dtype_size(t.elem);
      groups.push_back(std::move(group));
    }
  }
  for (size_t k = 0; k < g.nodes.size(); ++k)
    for (ValueId v : g.reads(g.nodes[k]))
      if (const int group = of(v); group >= 0) {
        auto& uses = groups[size_t(group)].uses;
        if (uses.empty() || uses.back() != int(k)) uses.push_back(int(k));
      }
}

void AliveBytes::finish() {
  alive.resize(change_.size() - 1);
  int64_t live = 0;
  for (size_t k = 0; k < alive.size(); ++k) {
    live += change_[k];
    alive[k] = size_t(live);
    if (alive[k] > peak) {
      peak = alive[k];
      peak_step = int(k);
    }
  }
}

}  // namespace onnxtrain
