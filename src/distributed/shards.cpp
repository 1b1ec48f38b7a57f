// Follows gradients and state variables through the update of a step.
#include "distributed/shards.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "op/channels_last.hpp"

namespace onnxtrain {

namespace {

constexpr const char* kNoGradient = "no gradient of its own goes into it";

// A function of which an element of the result depends on others of its tensor (a norm). Unknown:
// it does.
bool takes_sums(const char* function) {
  if (!function) return true;
  const std::string_view text = function;
  return text.find("Reduce") != text.npos || text.find("MatMul") != text.npos;
}

// Tensors of more than one element belong to units; numbers do not tie units together.
class Planner {
 public:
  Planner(const Graph& g, const Graph& t, const SplitStep::Updates& updates,
          const std::set<std::string>& gradients, const std::set<std::string>& elsewhere,
          const OpTable& table)
      : g_(g),
        t_(t),
        updates_(updates),
        gradients_(gradients),
        elsewhere_(elsewhere),
        table_(table),
        parent_(g.values.size()),
        ours_(g.values.size(), 0),
        everywhere_(g.values.size(), 0),
        needs_(g.values.size()) {
    std::iota(parent_.begin(), parent_.end(), ValueId(0));
  }

  ShardPlan run() {
    find_sources();
    for (const Node& n : g_.nodes) follow(n);
    for (const auto& [v, state] : updates_)
      for (ValueId old : reads_of(state))
        if (ours_[size_t(v)] && ours_[size_t(old)]) unite(v, old);
    find_own_numbers();
    need_everywhere();
    collect_units();
    return std::move(plan_);
  }

 private:
  bool is_big(ValueId v) const {
    const TypeInfo& t = t_.value(v).type;
    return !t.is_tensor() || !t.concrete() || num_elements(t.concrete_shape()) > 1;
  }
  bool is_updated(ValueId v) const {
    const std::string& state = g_.value(v).state;
    return !state.empty() && next_.count(state) != 0;
  }
  std::vector<ValueId> reads_of(const std::string& state) const {
    std::vector<ValueId> found;
    for (size_t v = 0; v < g_.values.size(); ++v)
      if (g_.values[v].state == state) found.push_back(ValueId(v));
    return found;
  }
  ValueId find(ValueId v) {
    while (parent_[size_t(v)] != v) v = parent_[size_t(v)] = parent_[size_t(parent_[size_t(v)])];
    return v;
  }
  void unite(ValueId a, ValueId b) { parent_[size_t(find(a))] = find(b); }

  void find_sources() {
    for (const auto& [v, state] : updates_) next_[state] = v;
    for (size_t k = 0; k < g_.values.size(); ++k) {
      const auto v = ValueId(k);
      if (is_updated(v) && is_big(v)) ours_[k] = 1;
    }
    for (ValueId v : g_.inputs)
      if (gradients_.count(g_.value_name(v)) != 0 && is_big(v)) ours_[size_t(v)] = 1;
  }

  // Of which the result is made: not where only the type of an operand counts.
  std::vector<ValueId> operands(const Node& n) const {
    if (n.is("CastLike")) return {n.inputs[0]};
    const Op* op = table_.find(n);
    return op && op->types_only ? std::vector<ValueId>() : g_.reads(n);
  }

  void follow(const Node& n) {
    std::vector<ValueId> big;
    std::set<ValueId> needs;
    for (ValueId v : operands(n)) {
      if (ours_[size_t(v)]) big.push_back(v);
      needs.insert(needs_[size_t(v)].begin(), needs_[size_t(v)].end());
    }
    if (big.empty() && needs.empty()) return;
    ValueId made = kNone;
    for (ValueId v : n.outputs)
      if (v != kNone && is_big(v)) {
        ours_[size_t(v)] = 1;
        if (made != kNone) unite(v, made);
        made = v;
      }
    for (ValueId v : big)
      if (made != kNone) unite(v, made);
    needs.insert(big.begin(), big.end());
    for (ValueId v : n.outputs)
      if (v != kNone && !is_big(v)) {
        needs_[size_t(v)] = needs;
        if (made != kNone) beside_[v] = made;
      }
    if (made == kNone) return;
    for (ValueId v : operands(n))
      if (!needs_[size_t(v)].empty()) numbers_read_.emplace_back(made, v);
  }

  // A number that an optimizer keeps beside its tensors, and that only its node reads.
  void find_own_numbers() {
    for (const auto& [v, state] : updates_) {
      const auto it = beside_.find(v);
      if (it == beside_.end() || elsewhere_.count(state) != 0) continue;
      bool own = true;
      const NodeId maker = g_.value(v).producer;
      for (const Node& n : g_.nodes)
        for (ValueId read : g_.reads(n))
          own = own && (g_.value(read).state != state || &n == &g_.nodes[size_t(maker)]);
      for (ValueId o : g_.outputs) own = own && g_.value(o).state != state;
      if (own) own_numbers_[state] = it->second;
    }
  }

  // The units that a number is made of.
  std::set<ValueId> units_of(ValueId number) {
    std::set<ValueId> units;
    for (ValueId v : needs_[size_t(number)]) units.insert(find(v));
    return units;
  }

  void need_everywhere() {
    for (ValueId v : g_.outputs) {
      const bool state = std::any_of(updates_.begin(), updates_.end(), [&](const auto& u) {
        return u.first == v && (ours_[size_t(v)] || own_numbers_.count(u.second) != 0);
      });
      if (!state) everywhere(v, "an output of the step needs it");
    }
    for (const auto& [v, state] : updates_)
      if (!ours_[size_t(v)] && own_numbers_.count(state) == 0)
        everywhere(v, cat("'", state, "' needs it"));
    for (const auto& [made, number] : numbers_read_)
      if (units_of(number) != std::set<ValueId>{find(made)})
        everywhere(number, "other tensors need a number that is made of it");
    for (const auto& [made, number] : numbers_read_)
      if (!everywhere_[size_t(number)]) whole_.insert(find(made));
    for (const auto& [state, made] : own_numbers_) whole_.insert(find(made));
  }

  // Every process computes v, and so all that it is made of.
  void everywhere(ValueId v, const std::string& why) {
    std::vector<ValueId> open = {v};
    while (!open.empty()) {
      const ValueId at = open.back();
      open.pop_back();
      if (at == kNone || everywhere_[size_t(at)]) continue;
      everywhere_[size_t(at)] = 1;
      if (is_updated(at) && ours_[size_t(at)]) keep(at, why, open);
      const NodeId p = g_.value(at).producer;
      if (p < 0) continue;
      for (ValueId read : operands(g_.nodes[size_t(p)])) open.push_back(read);
    }
  }

  // A variable that all processes have to have: they all update it.
  void keep(ValueId read, const std::string& why, std::vector<ValueId>& open) {
    const std::string& state = g_.value(read).state;
    if (!kept_.emplace(state, why).second) return;
    open.push_back(next_.at(state));
    for (auto it = own_numbers_.begin(); it != own_numbers_.end();) {
      if (find(it->second) != find(read)) {
        ++it;
        continue;
      }
      open.push_back(next_.at(it->first));
      it = own_numbers_.erase(it);
    }
  }

  void collect_units() {
    std::map<ValueId, ShardUnit> units;
    for (const auto& [v, state] : updates_) {
      const auto number = own_numbers_.find(state);
      const bool beside = number != own_numbers_.end();
      if ((!ours_[size_t(v)] && !beside) || kept_.count(state) != 0) continue;
      units[find(beside ? number->second : v)].variables.push_back(
          {state, v, elsewhere_.count(state) == 0});
    }
    for (ValueId v : g_.inputs)
      if (ours_[size_t(v)])
        if (const auto it = units.find(find(v)); it != units.end()) it->second.sums.push_back(v);
    for (const auto& [state, why] : kept_) plan_.kept.push_back(cat("'", state, "': ", why));
    for (auto& [unit, u] : units) {
      if (u.sums.empty()) {
        plan_.kept.push_back(cat("'", u.variables[0].name, "': ", kNoGradient));
        continue;
      }
      collect_nodes(u);
      u.by_element = whole_.count(unit) == 0 && is_by_element(u);
      for (ValueId v : u.sums) plan_.whole_gradients |= u.by_element && everywhere_[size_t(v)] != 0;
      plan_.units.push_back(std::move(u));
    }
    plan_.everywhere = everywhere_;
  }

  void collect_nodes(ShardUnit& u) {
    std::set<NodeId> nodes;
    std::vector<ValueId> open;
    for (const auto& v : u.variables) open.push_back(v.next);
    while (!open.empty()) {
      const NodeId p = g_.value(open.back()).producer;
      open.pop_back();
      if (p < 0 || !nodes.insert(p).second) continue;
      for (ValueId v : g_.reads(g_.nodes[size_t(p)]))
        if (ours_[size_t(v)] && !everywhere_[size_t(v)]) open.push_back(v);
    }
    u.nodes.assign(nodes.begin(), nodes.end());
  }

  bool is_by_element(const ShardUnit& u) const {
    if (u.sums.size() != 1) return false;
    const Shape shape = t_.value(u.sums[0]).type.concrete_shape();
    auto fits = [&](ValueId v) {
      const TypeInfo& t = t_.value(v).type;
      if (!t.is_tensor() || !t.concrete()) return false;
      const Shape s = t.concrete_shape();
      if (num_elements(s) == 1) return s.size() <= shape.size();
      return s == shape && (ours_[size_t(v)] || g_.value(v).is_constant());
    };
    for (const auto& v : u.variables)
      if (!fits(v.next)) return false;
    return std::all_of(u.nodes.begin(), u.nodes.end(), [&](NodeId k) {
      const Node& n = g_.nodes[size_t(k)];
      if (!by_element(n)) return false;
      for (const auto* operands : {&n.inputs, &n.outputs})
        for (ValueId v : *operands)
          if (v != kNone && !fits(v)) return false;
      return g_.reads(n).size() == size_t(std::count_if(n.inputs.begin(), n.inputs.end(),
                                                        [](ValueId v) { return v != kNone; }));
    });
  }

  bool by_element(const Node& n) const {
    const Op* op = table_.find(n);
    if (!op || op->random) return false;
    if (op->update)
      return (op->update->vector || !takes_sums(op->function)) &&
             int(n.inputs.size()) == op->update->scalars + 2 + op->update->states;
    return op->broadcasts || op->micro_op >= 0 || channels_last_rule(*op).elementwise ||
           n.is("Identity");
  }

  const Graph &g_, &t_;
  const SplitStep::Updates& updates_;
  const std::set<std::string>&gradients_, &elsewhere_;
  const OpTable& table_;
  ShardPlan plan_;
  std::map<std::string, ValueId> next_;         // new values
  std::vector<ValueId> parent_;                 // of tensors that belong together
  std::vector<char> ours_;                      // tensors that gradients or state go into
  std::vector<char> everywhere_;                // computed by every process
  std::vector<std::set<ValueId>> needs_;        // of numbers: tensors that they are made of
  std::map<ValueId, ValueId> beside_;           // numbers that a node makes beside a tensor
  std::map<std::string, ValueId> own_numbers_;  // state variables that are such numbers
  std::vector<std::pair<ValueId, ValueId>> numbers_read_;  // a tensor, a number that it needs
  std::set<ValueId> whole_;                                // units that need whole tensors
  std::map<std::string, std::string> kept_;  // variables that are not shared out, and why
};

}  // namespace

ShardPlan plan_shards(const Graph& g, const Graph& t, const SplitStep::Updates& updates,
                      const std::set<std::string>& gradients,
                      const std::set<std::string>& elsewhere, const OpTable& table) {
  return Planner(g, t, updates, gradients, elsewhere, table).run();
}

}  // namespace onnxtrain
