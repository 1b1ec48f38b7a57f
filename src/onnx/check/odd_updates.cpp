// Do the assignments of a training section belong to its optimizers, and its gradients to its loss?
#include "onnx/odd_updates.hpp"

#include <algorithm>
#include <deque>
#include <set>

#include "op/op.hpp"

namespace onnxtrain {

namespace {

// Is `on` among the values that `v` is computed from? Near ones are found first.
bool depends(const Graph& g, ValueId v, const std::set<ValueId>& on) {
  std::deque<ValueId> open = {v};
  std::set<ValueId> seen = {v};
  while (!open.empty()) {
    const ValueId at = open.front();
    open.pop_front();
    if (on.count(at) != 0) return true;
    const NodeId p = g.value(at).producer;
    if (p < 0) continue;
    for (ValueId in : g.reads(g.nodes[size_t(p)]))
      if (in != kNone && seen.insert(in).second) open.push_back(in);
  }
  return false;
}

class Section {
 public:
  Section(const Model& m, const TrainingStep& step, std::vector<OddUpdate>& found)
      : m_(m), step_(step), g_(step.algorithm), found_(found) {}

  void look() {
    for (const Node& n : g_.nodes) {
      const Op* op = all_ops().find(n);
      if (op && op->update) look_at(n, *op->update);
      if (n.op == "Gradient" && n.domain == kTrainingDomain) look_at_gradient(n);
    }
  }

 private:
  // The state variable that an input is, also in another type; "" when it is computed.
  std::string state(ValueId v) const {
    if (const NodeId p = v == kNone ? -1 : g_.value(v).producer;
        p >= 0 && g_.nodes[size_t(p)].is("Cast"))
      v = g_.nodes[size_t(p)].inputs[0];
    if (v == kNone || g_.value(v).producer >= 0) return {};
    const std::string& name = g_.value_name(v);
    return m_.initializer(name) ? name : std::string();
  }
  const std::string* bound(const std::string& name) const {
    for (const auto& [key, value] : step_.update_binding)
      if (key == name) return &value;
    return nullptr;
  }

  void look_at(const Node& n, const UpdateForm& form) {
    const auto first = size_t(form.scalars), kinds = 2 + size_t(form.states);
    if (n.inputs.size() < first + kinds) return;
    // the standard's operators take several weights: all X, all G, all of the first state, ...
    const size_t weights = std::max<size_t>(1, (n.inputs.size() - first) / kinds);
    for (size_t j = 0; j < n.outputs.size(); ++j) {
      const size_t kind = j / weights;  // 0: X; behind it the states
      const size_t in = first + (kind == 0 ? 0 : kind + 1) * weights + j % weights;
      if (in >= n.inputs.size() || n.outputs[j] == kNone) continue;
      const std::string name = state(n.inputs[in]);
      if (name.empty()) continue;
      const std::string made = g_.value_name(n.outputs[j]);
      const std::string* value = bound(name);
      const ValueId v = value ? g_.find(*value) : kNone;
      if (!value)
        say(cat("'", name, "' is updated by ", n.label(), " and the new value '", made,
                "' is never assigned to it"),
            cat("add the binding '", name, "' = '", made, "'"));
      else if (v != kNone && !depends(g_, v, {n.outputs[j]}))
        say(cat("'", name, "' is assigned '", *value,
                "', which does not come from the update that ", n.label(), " makes of it ('", made,
                "')"),
            cat("bind it to its own update: '", name, "' = '", made, "'"));
    }
    if (form.scalars >= 2) look_at_counter(n);
  }

  // The steps that an optimizer counts by.
  void look_at_counter(const Node& n) {
    ValueId v = n.inputs.size() > 1 ? n.inputs[1] : kNone;
    if (const NodeId p = v == kNone ? -1 : g_.value(v).producer;
        p >= 0 && g_.nodes[size_t(p)].is("Add"))
      v = g_.nodes[size_t(p)].inputs[0];
    const std::string name = state(v);
    if (name.empty() || bound(name) || !counters_.insert(name).second) return;
    say(cat("'", name, "', which counts the steps of ", n.label(),
            ", is never assigned: every step "
            "is taken for the first"),
        "bind it to its value plus 1");
  }

  void look_at_gradient(const Node& n) {
    const ValueId y = g_.find(n.s("y", ""));
    ValueId loss = kNone;
    for (ValueId v : g_.outputs)
      if (g_.value_name(v) == "loss") loss = v;
    if (y == kNone || loss == kNone || y == loss) return;
    const std::vector<ValueId>& in = g_.inputs;
    const std::set<ValueId> targets(in.begin(), in.end());
    if (targets.empty() || !depends(g_, loss, targets) || depends(g_, y, targets)) return;
    say(cat(n.label(), " differentiates '", g_.value_name(y), "', which no target reaches: '",
            g_.value_name(in[0]), "' teaches nothing"),
        "differentiate the loss: y = 'loss'");
  }

  void say(std::string text, std::string hint) {
    constexpr size_t kMost = 3;
    if (found_.size() < kMost) found_.push_back({std::move(text), std::move(hint)});
  }

  const Model& m_;
  const TrainingStep& step_;
  const Graph& g_;
  std::vector<OddUpdate>& found_;
  std::set<std::string> counters_;
};

}  // namespace

std::vector<OddUpdate> odd_updates(const Model& m) {
  std::vector<OddUpdate> found;
  for (const TrainingStep& step : m.training) Section(m, step, found).look();
  return found;
}

}  // namespace onnxtrain
