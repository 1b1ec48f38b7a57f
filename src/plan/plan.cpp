// From a specialised graph to a plan.
#include "plan/plan.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_map>

#include "core/memory.hpp"
#include "op/may_overflow.hpp"
#include "plan/watched.hpp"

namespace onnxtrain {

namespace {

class Planner {
 public:
  Planner(Graph graph, const StateUpdates& updates, const OpTable& table, const StateTensor& state)
      : plan_(std::make_unique<Plan>()), table_(table), state_(state) {
    plan_->graph = std::move(graph);
    for (const auto& [v, s] : updates)
      plan_->updates.push_back({v, s, nullptr, DType::kUndefined, {}, 0, false});
  }

  std::unique_ptr<Plan> make(ThreadPool& pool, const Arena& arena) {
    order_and_lifetimes();
    prepare_steps(pool);
    assign_memory(arena);
    bind_pointers();
    find_watched(*plan_, unsure_);
    return std::move(plan_);
  }

  size_t bytes_only(const std::function<size_t(const Node&)>& workspace) {
    order_and_lifetimes();
    std::vector<ValueId> owners;
    std::vector<Lifetime> lives = lifetimes(owners);
    for (size_t k = 0; k < g().nodes.size(); ++k)
      if (size_t w = workspace(g().nodes[k])) lives.push_back({int(k), int(k), w});
    return plan_memory(lives).total;
  }

 private:
  void order_and_lifetimes() {
    writers_last();
    place_values();
    find_lifetimes();
    alias_views_and_in_place();
  }
  Graph& g() { return plan_->graph; }
  Slot& slot(ValueId v) { return plan_->slots[size_t(v)]; }

  // Nodes that may write a state variable in place, and what follows from them, go to the end: so
  // a run can be judged before it changes anything (runtime/guard). A node whose results are also
  // needed for something else than updates (BatchNormalization's statistics) stays and does not
  // write in place.
  void writers_last() {
    std::map<ValueId, std::string> assigned;
    for (const Update& u : plan_->updates) assigned[u.value] = u.state;
    std::vector<char> only_updates(g().values.size(), 1), tail(g().values.size(), 0);
    unsure_.assign(g().values.size(), 0);
    for (ValueId v : g().outputs)
      if (!assigned.count(v)) only_updates[size_t(v)] = 0;
    writer_.assign(g().nodes.size(), 0);
    for (size_t k = g().nodes.size(); k-- > 0;) {
      const Node& n = g().nodes[k];
      bool free = true;
      for (ValueId v : n.outputs) free &= v == kNone || only_updates[size_t(v)];
      writer_[k] = free;
      if (!free)
        for (ValueId v : g().reads(n)) only_updates[size_t(v)] = 0;
    }
    std::vector<Node> first, last;
    for (size_t k = 0; k < g().nodes.size(); ++k) {
      Node& n = g().nodes[k];
      const bool writes = writer_[k] && writes_state(n, assigned);
      bool unsure = writes && may_overflow(n), late = writes && !unsure;
      for (ValueId v : g().reads(n)) {
        late |= tail[size_t(v)] != 0;
        unsure |= unsure_[size_t(v)] != 0;
      }
      for (ValueId v : n.outputs)
        if (v != kNone) unsure_[size_t(v)] = unsure;
      for (ValueId v : n.outputs)
        if (v != kNone) tail[size_t(v)] = late;
      (late ? last : first).push_back(std::move(n));
    }
    writer_.assign(first.size(), 0);
    writer_.resize(first.size() + last.size(), 1);
    std::move(last.begin(), last.end(), std::back_inserter(first));
    g().nodes = std::move(first);
    g().renumber();
  }

  bool writes_state(const Node& n, const std::map<ValueId, std::string>& assigned) {
    const Op& op = table_.get(n);
    for (auto [i, o] : op.in_place_of ? op.in_place_of(n) : op.in_place) {
      if (size_t(i) >= n.inputs.size() || size_t(o) >= n.outputs.size()) continue;
      if (n.inputs[size_t(i)] == kNone) continue;
      auto it = assigned.find(n.outputs[size_t(o)]);
      if (it != assigned.end() && g().value(n.inputs[size_t(i)]).state == it->second) return true;
    }
    return false;
  }

  void place_values() {
    plan_->slots.resize(g().values.size());
    for (size_t k = 0; k < g().values.size(); ++k) {
      const ValueDef& d = g().values[k];
      Slot& s = plan_->slots[k];
      s.root = ValueId(k);
      if (d.type.concrete()) s.type = {d.type.elem, d.type.concrete_shape()};
      if (d.producer >= 0) {
        s.place = d.type.concrete() ? Place::kArena : Place::kDynamic;
        // strings own memory of their own: they live in tensors, not in the arena
        if (d.type.elem == DType::kString) s.place = Place::kDynamic;
      } else if (!d.state.empty()) {
        s.place = Place::kState;
        s.address = const_cast<void*>(state_(d.state).data());
      } else if (d.constant.defined()) {
        s.place = Place::kConstant;
        s.address = const_cast<void*>(d.constant.data());
      }
    }
    for (size_t k = 0; k < g().inputs.size(); ++k) {
      ValueId v = g().inputs[k];
      slot(v).input = int(k);
      // an initializer that is also an input takes the fed value when there is one (G5)
      slot(v).place = g().value(v).type.concrete() ? Place::kInput : Place::kDynamic;
    }
    // a node with one dynamic operand or output is dynamic altogether
    for (const Node& n : g().nodes) {
      const Op& op = table_.get(n);
      // runs on values: its results of known type are copied to their place
      bool on_values = op.run_values && !op.shape;
      bool dyn = on_values;
      for (ValueId v : g().reads(n)) dyn |= slot(v).place == Place::kDynamic;
      for (ValueId v : n.outputs) dyn |= v != kNone && slot(v).place == Place::kDynamic;
      if (dyn && !on_values)
        for (ValueId v : n.outputs)
          if (v != kNone) slot(v).place = Place::kDynamic;
      dynamic_.push_back(dyn);
      plan_->has_dynamic |= dyn;
    }
  }

  void find_lifetimes() {
    size_t n = g().values.size();
    first_.assign(n, -1);
    last_.assign(n, -1);
    for (size_t k = 0; k < g().nodes.size(); ++k) {
      for (ValueId v : g().reads(g().nodes[k])) last_[size_t(v)] = int(k);
      for (ValueId v : g().nodes[k].outputs)
        if (v != kNone) {
          first_[size_t(v)] = int(k);
          last_[size_t(v)] = std::max(last_[size_t(v)], int(k));
        }
    }
    int end = int(g().nodes.size());
    for (ValueId v : g().outputs) last_[size_t(v)] = end;
    for (const Update& u : plan_->updates) last_[size_t(u.value)] = end;
    plan_->release_after.resize(g().nodes.size());
    for (size_t v = 0; v < n; ++v)
      if (plan_->slots[v].place == Place::kDynamic && last_[v] >= 0 && last_[v] < end)
        plan_->release_after[size_t(last_[v])].push_back(ValueId(v));
  }

  // Extends the root's life by the life of a value that shares its memory.
  void share(ValueId v, ValueId with) {
    ValueId root = slot(with).root;
    slot(v).root = root;
    first_[size_t(root)] = std::min(first_[size_t(root)], first_[size_t(v)]);
    last_[size_t(root)] = std::max(last_[size_t(root)], last_[size_t(v)]);
  }

  static size_t bytes(const TensorType& t) { return size_t(t.size()) * dtype_size(t.dtype); }

  void alias_views_and_in_place() {
    for (const Update& u : plan_->updates) updated_.emplace(u.state, u.value);
    for (size_t v = 0; v < g().values.size(); ++v)
      if (!g().values[v].state.empty()) of_state_[g().values[v].state].push_back(ValueId(v));
    view_.assign(g().nodes.size(), 0);
    for (size_t k = 0; k < g().nodes.size(); ++k) {
      if (dynamic_[k]) continue;
      const Node& n = g().nodes[k];
      const Op& op = table_.get(n);
      if (op.view_of >= 0 && n.outputs[0] != kNone) {
        ValueId x = n.inputs[size_t(op.view_of)];
        if (slot(slot(x).root).place != Place::kState || !updated_in_place_later(x)) {
          share(n.outputs[0], x);
          view_[k] = 1;
          continue;
        }
      }
      for (auto [i, o] : op.in_place_of ? op.in_place_of(n) : op.in_place) {
        if (size_t(i) >= n.inputs.size() || size_t(o) >= n.outputs.size()) continue;
        ValueId x = n.inputs[size_t(i)], y = n.outputs[size_t(o)];
        if (x == kNone || y == kNone || bytes(slot(x).type) != bytes(slot(y).type)) continue;
        if (slot(y).root != y) continue;
        if (can_take_state(NodeId(k), x, y)) {
          slot(y).root = x;
        } else if (slot(x).place == Place::kArena && slot(slot(x).root).place == Place::kArena &&
                   last_[size_t(slot(x).root)] == int(k) && reads_once(n, x)) {
          share(y, x);
        } else {
          continue;
        }
      }
    }
  }

  bool updated_in_place_later(ValueId x) {
    return updated_.count(g().value(slot(x).root).state) != 0;
  }

  bool reads_once(const Node& n, ValueId x) {
    int count = 0;
    for (ValueId v : g().reads(n)) count += slot(v).root == slot(x).root;
    return count == 1;
  }

  // The update of a state variable may be written over it when nothing reads the old value later.
  bool can_take_state(NodeId k, ValueId x, ValueId y) {
    if (slot(x).place != Place::kState || !writer_[size_t(k)]) return false;
    if (may_overflow(g().nodes[size_t(k)])) return false;  // it is looked at first
    const std::string& s = g().value(x).state;
    auto [begin, end] = updated_.equal_range(s);
    if (std::none_of(begin, end, [&](const auto& u) { return u.second == y; })) return false;
    // what shares a variable's memory has extended its life
    for (ValueId v : of_state_[s])
      if (v != y && last_[size_t(v)] > k) return false;
    return reads_once(g().nodes[size_t(k)], x);
  }

  void prepare_steps(ThreadPool& pool) {
    for (size_t k = 0; k < g().nodes.size(); ++k) {
      const Node& n = g().nodes[k];
      const Op& op = table_.get(n);
      Step step;
      step.node = NodeId(k);
      step.op = &op;
      step.dynamic = dynamic_[k];
      if (!step.dynamic && !view_[k]) {
        std::vector<TensorType> in, out;
        std::vector<const Tensor*> values;
        for (ValueId v : n.inputs) {
          in.push_back(v == kNone ? TensorType{} : slot(v).type);
          values.push_back(v != kNone && g().value(v).is_constant() &&
                                   slot(v).place == Place::kConstant
                               ? &g().value(v).constant
                               : nullptr);
        }
        for (ValueId v : n.outputs) out.push_back(v == kNone ? TensorType{} : slot(v).type);
        Prepare p(n, std::move(in), std::move(out), std::move(values), pool);
        try {
          Choice c = choose_kernel(op, p);
          step.kernel = std::move(c.kernel);
          step.impl = c.impl;
          step.refused = std::move(c.refused);
          step.workspace_bytes = c.workspace;
        } catch (Error& e) {
          e.add_place("in " + n.label());
          throw;
        }
      }
      if (!view_[k]) plan_->steps.push_back(std::move(step));
    }
  }

  std::vector<Lifetime> lifetimes(std::vector<ValueId>& owners) {
    std::vector<Lifetime> lives;
    for (size_t v = 0; v < g().values.size(); ++v) {
      const Slot& s = plan_->slots[v];
      if (s.place != Place::kArena || s.root != ValueId(v)) continue;
      lives.push_back({first_[v], last_[v], bytes(s.type)});
      owners.push_back(ValueId(v));
    }
    return lives;
  }

  void assign_memory(const Arena& arena) {
    std::vector<ValueId> owners;
    std::vector<Lifetime> lives = lifetimes(owners);
    size_t values = lives.size();
    for (const Step& s : plan_->steps)
      if (s.workspace_bytes) lives.push_back({s.node, s.node, s.workspace_bytes});
    MemoryLayout m = plan_memory(lives);
    plan_->arena_bytes = m.total;
    plan_->peak_bytes = m.peak;
    const bool fits = arena.memory && m.total <= arena.bytes;
    plan_->arena = fits ? arena.memory : allocate_lasting(m.total);
    plan_->reserved_bytes = fits ? arena.bytes : m.total;
    char* base = static_cast<char*>(plan_->arena.get());
    for (size_t k = 0; k < values; ++k) slot(owners[k]).address = base + m.offsets[k];
    size_t w = values;
    for (Step& s : plan_->steps)
      if (s.workspace_bytes) s.workspace = base + m.offsets[w++];
  }

  void bind_pointers() {
    for (size_t v = 0; v < plan_->slots.size(); ++v) {
      Slot& s = plan_->slots[v];
      if (s.root != ValueId(v) && s.root != kNone) s.address = slot(s.root).address;
    }
    plan_->input_pointers.resize(g().inputs.size());
    plan_->bound_inputs.resize(g().inputs.size(), nullptr);
    auto bind = [&](ValueId v, void*& p) {
      if (v == kNone) return;
      const Slot& s = slot(v);
      p = s.address;
      const Slot& root = slot(s.root);
      if (root.input >= 0 && root.place == Place::kInput)
        plan_->input_pointers[size_t(root.input)].push_back(&p);
    };
    for (Step& s : plan_->steps) {
      if (s.dynamic) continue;
      const Node& n = g().nodes[size_t(s.node)];
      s.in.resize(n.inputs.size(), nullptr);
      s.out.resize(n.outputs.size(), nullptr);
      for (size_t k = 0; k < n.inputs.size(); ++k) bind(n.inputs[k], s.in[k]);
      for (size_t k = 0; k < n.outputs.size(); ++k) bind(n.outputs[k], s.out[k]);
    }
    // views of an input move with it
    for (size_t v = 0; v < plan_->slots.size(); ++v) {
      Slot& s = plan_->slots[v];
      if (s.root == kNone) continue;
      const Slot& root = slot(s.root);
      if (root.input >= 0 && root.place == Place::kInput)
        plan_->input_pointers[size_t(root.input)].push_back(&s.address);
    }
    for (Update& u : plan_->updates) {
      TensorType t = slot(u.value).type;
      const Tensor& variable = state_(u.state);
      u.to = const_cast<void*>(variable.data());
      u.dtype = variable.dtype();
      u.shape = variable.shape();
      u.bytes = variable.bytes();
      if (slot(u.value).place != Place::kDynamic) check_update(u, t.dtype, t.shape);
      u.in_place = slot(u.value).address == u.to && slot(u.value).place != Place::kDynamic;
    }
  }

  std::unique_ptr<Plan> plan_;
  const OpTable& table_;
  const StateTensor& state_;
  std::vector<char> dynamic_, writer_;  // by node
  std::vector<char> unsure_;  // by value: new values of state that may overflow, what follows
  std::vector<int> first_, last_;
  std::vector<char> view_;  // by node
  std::unordered_multimap<std::string, ValueId> updated_;
  std::unordered_map<std::string, std::vector<ValueId>> of_state_;
};

}  // namespace

std::unique_ptr<Plan> make_plan(Graph graph, const StateUpdates& updates, const OpTable& table,
                                const StateTensor& state, ThreadPool& pool, const Arena& arena) {
  return Planner(std::move(graph), updates, table, state).make(pool, arena);
}

size_t plan_bytes(Graph graph, const StateUpdates& updates, const OpTable& table,
                  const StateTensor& state, const std::function<size_t(const Node&)>& workspace) {
  return Planner(std::move(graph), updates, table, state).bytes_only(workspace);
}

void check_update(const Update& u, DType dtype, const Shape& shape) {
  if (dtype == u.dtype && shape == u.shape) return;
  model_error("OT1312", cat("state variable '", u.state, "' is ", dtype_name(u.dtype),
                            to_string(u.shape), ", the value that update_binding assigns to it is ",
                            dtype_name(dtype), to_string(shape)));
}

}  // namespace onnxtrain
