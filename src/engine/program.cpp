// Specialise, differentiate, pass, plan, run.
#include "engine/program.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "autodiff/autodiff.hpp"
#include "autodiff/sequences.hpp"
#include "core/memory.hpp"
#include "core/table_budget.hpp"
#include "engine/input_sizes.hpp"
#include "engine/memory_limit.hpp"
#include "engine/not_finite.hpp"
#include "engine/single_values.hpp"
#include "engine/stages.hpp"
#include "engine/target_shapes.hpp"
#include "engine/update_gradients.hpp"
#include "infer/specialise.hpp"

namespace onnxtrain {

namespace {

// The value, if this input is planned for by value.
const Tensor* known_value(const ValueDef& d, const Value& v) {
  const Tensor* t = std::get_if<Tensor>(&v);
  bool small = t && t->size() <= 64 && t->dtype() != DType::kString;
  return small && d.planned_by_value ? t : nullptr;
}

// What distinguishes plans: kind, element type and shape of every input.
std::string key_of(const Graph& g, const std::vector<Value>& inputs) {
  std::string key;
  for (size_t k = 0; k < inputs.size(); ++k) {
    const Value& v = inputs[k];
    if (const Tensor* t = known_value(g.value(g.inputs[k]), v))
      key.append(static_cast<const char*>(t->data()), t->bytes());
    if (const Tensor* t = std::get_if<Tensor>(&v)) {
      key += char('A' + int(t->dtype()));
      for (int64_t d : t->shape()) key.append(reinterpret_cast<const char*>(&d), sizeof d);
    } else {
      key += '!';
    }
    key += ';';
  }
  return key;
}

constexpr size_t kMaxPlans = 16;
constexpr size_t kSmallTables = size_t(16) << 20;  // bytes

// Bytes of the tensors in a value.
size_t value_bytes(const Value& v) {
  if (const Tensor* t = std::get_if<Tensor>(&v)) return t->bytes();
  size_t bytes = 0;
  if (const auto* s = std::get_if<std::shared_ptr<Sequence>>(&v); s && *s)
    for (const Value& item : (*s)->items) bytes += value_bytes(item);
  return bytes;
}

}  // namespace

bool verify_by_default() {
  const char* v = std::getenv("ONNXTRAIN_VERIFY_PASSES");
  return v && *v && *v != '0';
}

struct Program::Impl {
  std::vector<std::pair<ValueId, std::string>> updates;
  std::shared_ptr<State> state;
  std::shared_ptr<ThreadPool> pool;
  ProgramOptions options;
  std::mutex mutex;
  StepObserver* observer = nullptr;
  std::vector<void*> data;  // of run_again

  struct Entry {
    std::string key;
    std::unique_ptr<Plan> plan;
    bool direct = false;  // no dynamic values anywhere: run_static can run it
    std::map<const Graph*, std::unique_ptr<Program>> subprograms;  // of the plan's own subgraphs
  };
  std::list<Entry> plans;  // most recent first

  // Tensors of the model, for the default limits; and what plans of bodies take.
  size_t model_bytes = 0, data_bytes = 0;
  std::shared_ptr<Taken> bodies = std::make_shared<Taken>();

  // Was a time given that counts in every node?
  bool time_counts() const {
    return options.limits.seconds > 0 && !options.limits.seconds_in_loops;
  }
  std::optional<Budget> budget_for(const std::vector<Value>& inputs);
  void set_limits(Budget& budget, const Plan& plan) const;
  void rewrite(Graph& g, Stages& stages) const;
  std::unique_ptr<Plan> make_plan_of(Graph g, Stages& stages);

  Program& subprogram(Entry& e, const GraphPtr& g) {
    auto it = e.subprograms.find(g.get());
    if (it == e.subprograms.end()) {
      Graph copy = g->clone();
      ProgramOptions o = options;
      o.limits = {};
      o.nested = true;
      for (const auto& c : copy.captures) copy.inputs.push_back(c.inner);
      copy.captures.clear();
      it =
          e.subprograms
              .emplace(g.get(), std::make_unique<Program>(
                                    std::move(copy), std::vector<std::pair<ValueId, std::string>>{},
                                    state, pool, std::move(o)))
              .first;
    }
    return *it->second;
  }

  // Runs bodies of the plan in front.
  SubgraphRunner subgraph_runner(uint64_t seed) {
    return [this, seed](const GraphPtr& g, const std::vector<Value>& in, uint64_t inner_step) {
      return subprogram(plans.front(), g).run(in, seed, inner_step);
    };
  }

  RunOptions run_options(uint64_t seed, uint64_t step) const {
    RunOptions o;
    o.pool = pool.get();
    o.seed = seed;
    o.step = step;
    return o;
  }
};

Program::Program(Graph graph, std::vector<std::pair<ValueId, std::string>> updates,
                 std::shared_ptr<State> state, std::shared_ptr<ThreadPool> pool,
                 ProgramOptions options)
    : graph_(std::move(graph)), impl_(std::make_unique<Impl>()) {
  impl_->updates = std::move(updates);
  impl_->state = std::move(state);
  impl_->pool = std::move(pool);
  impl_->options = std::move(options);
  for (const ValueDef& d : graph_.values)
    if (d.constant.defined()) impl_->model_bytes += d.constant.bytes();
}

Program::~Program() = default;

// What this run may take; nothing when it is part of another. While it is planned, a limit that
// was given is for plans: what is folded then is not in their memory.
std::optional<Budget> Program::Impl::budget_for(const std::vector<Value>& inputs) {
  if (Budget::current()) return std::nullopt;
  data_bytes = state->bytes();
  for (const Value& v : inputs) data_bytes += value_bytes(v);
  Limits l = options.limits;
  l.memory = 0;
  l = with_defaults(l, model_bytes + data_bytes);
  l.memory = std::max(l.memory, options.limits.memory);
  return std::optional<Budget>(std::in_place, l, bodies, time_counts());
}

// Its plan is there: only what shows while it runs is left to be counted.
void Program::Impl::set_limits(Budget& budget, const Plan& plan) const {
  Limits l = with_defaults(options.limits, model_bytes + data_bytes);
  if (options.limits.memory > 0) {
    const size_t planned = options.memory_beside + plan.reserved_bytes * options.memory_shares;
    l.memory = l.memory > planned ? l.memory - planned : 0;
  }
  if (!plan.has_dynamic) l.memory = Limits::none().memory;
  budget.set_limits(l);
}

// From the general graph with concrete inputs to the graph that is planned.
void Program::Impl::rewrite(Graph& g, Stages& stages) const {
  const OpTable& table = all_ops();
  std::vector<ValueId> keep;
  for (const auto& [v, s] : updates) keep.push_back(v);
  g.remove_dead(keep);
  SpecialiseOptions folding;  // constants that are folded are memory, too
  if (const size_t most = options.limits.memory)
    folding.fold_limit =
        std::clamp(int64_t(most / 8), folding.shape_fold_limit, folding.fold_limit);
  auto settle = [&](const char* name) {
    stages.run(name, [&] {
      do {
        specialise(g, table, *pool, folding);
      } while (inline_constant_ifs(g));
    });
  };
  settle("specialise");
  if (!updates.empty()) refuse_single_values(g);
  if (!options.targets.empty()) refuse_other_shapes(g, options.targets);
  bool changed = false;
  stages.run("open_sequences", [&] { changed = open_sequences(g, table); });
  if (changed) settle("specialise (sequences)");
  const auto& skip = options.skip_passes;
  if (std::find(skip.begin(), skip.end(), "recognise") == skip.end())
    stages.run("recognise", [&] { recognise_operators(g, keep); });
  stages.run("gradients", [&] { changed = expand_gradients(g, table); });
  if (changed) settle("specialise (gradients)");
  stages.run("absorb_constants", [&] { absorb_constants(g); });
  stages.add(run_passes(g, keep, table, {skip, stages.verify()}));
}

std::unique_ptr<Plan> Program::Impl::make_plan_of(Graph g, Stages& stages) {
  StateTensor variable = [&](const std::string& name) -> const Tensor& { return state->get(name); };
  // plans of one program never run at the same time
  Arena arena;
  for (const auto& e : plans)
    if (e.plan->reserved_bytes > arena.bytes) arena = {e.plan->arena, e.plan->reserved_bytes};
  std::unique_ptr<Plan> plan;
  const auto start = std::chrono::steady_clock::now();
  const int before = int(g.nodes.size());
  std::optional<TableBudget> tables;
  std::optional<NoBudget> planned;  // against the limit of the process, or the one given
  if (!options.nested) {
    // the small tables of every plan are no reason to refuse it: its own check names what it needs
    Limits of_tables = with_defaults(options.limits, model_bytes + data_bytes);
    of_tables.memory = std::max(of_tables.memory, kSmallTables);
    tables.emplace(of_tables);
    planned.emplace();
  }
  if (options.limits.memory == 0) {
    plan = make_plan(std::move(g), updates, all_ops(), variable, *pool, arena);
  } else {
    const ProgramOptions& o = options;
    LimitedPlan limited{updates,         all_ops(),       variable,       *pool,
                        o.limits.memory, o.memory_beside, o.memory_shares};
    plan = limited.make(g, arena);
    if (plan->arena != arena.memory) plans.clear();  // only one arena fits the limit
  }
  if (plan->arena != arena.memory) touch_arena(*plan, *pool);
  std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (stages.verify()) plan->graph.verify("plan");
  plan->stages = stages.take();
  plan->stages.push_back({"plan", took.count(), before, int(plan->graph.nodes.size())});
  return plan;
}

Plan& Program::plan_for(const std::vector<Value>& inputs) {
  OT_ASSERT(inputs.size() == graph_.inputs.size());
  auto& plans = impl_->plans;
  std::string key = key_of(graph_, inputs);
  for (auto it = plans.begin(); it != plans.end(); ++it)
    if (it->key == key) {
      plans.splice(plans.begin(), plans, it);
      return *plans.front().plan;
    }
  const std::optional<Budget> budget = impl_->budget_for(inputs);
  Graph g = graph_.clone();
  for (size_t k = 0; k < inputs.size(); ++k) {
    ValueDef& d = g.value(g.inputs[k]);
    if (const Tensor* t = std::get_if<Tensor>(&inputs[k])) {
      d.type = TypeInfo::tensor(t->dtype(), t->shape());
      if (known_value(d, inputs[k])) g.replace_uses(g.inputs[k], g.add_constant(t->clone()));
    } else if (d.type.concrete()) {
      d.type.shape = std::nullopt;
    }
  }
  Stages stages(g, impl_->options.verify_passes);
  std::unique_ptr<Plan> plan;
  try {
    impl_->rewrite(g, stages);
    plan = impl_->make_plan_of(std::move(g), stages);
  } catch (const Error& e) {
    blame_inputs(graph_, inputs, e);
    throw;
  }
  bool direct = !plan->has_dynamic;
  for (ValueId v : plan->graph.inputs)
    direct = direct && plan->slots[size_t(v)].place == Place::kInput;
  for (ValueId v : plan->graph.outputs)
    direct = direct && plan->slots[size_t(v)].place != Place::kDynamic;
  plans.push_front({std::move(key), std::move(plan), direct, {}});
  if (plans.size() > kMaxPlans) plans.pop_back();
  return *plans.front().plan;
}

// The plan was made for arrays of these types.
static bool takes(const Plan& plan, const ArrayRef* inputs) {
  for (size_t k = 0; k < plan.graph.inputs.size(); ++k) {
    const TensorType& t = plan.slots[size_t(plan.graph.inputs[k])].type;
    const ArrayRef& a = inputs[k];
    if (a.dtype != t.dtype || !std::equal(a.dims, a.dims + a.rank, t.shape.begin(), t.shape.end()))
      return false;
  }
  return true;
}

const Plan* Program::run_again(const ArrayRef* inputs, uint64_t seed, uint64_t step, Guard* guard) {
  std::lock_guard lock(impl_->mutex);
  if (impl_->time_counts()) return nullptr;
  auto& plans = impl_->plans;
  const auto found = std::find_if(plans.begin(), plans.end(), [&](const Impl::Entry& e) {
    return e.direct && takes(*e.plan, inputs);
  });
  if (found == plans.end()) return nullptr;
  plans.splice(plans.begin(), plans, found);
  Plan& plan = *plans.front().plan;
  std::vector<void*>& data = impl_->data;
  data.resize(plan.graph.inputs.size());
  for (size_t k = 0; k < data.size(); ++k) data[k] = inputs[k].data;
  RunOptions o = impl_->run_options(seed, step);
  o.guard = guard;
  o.observer = impl_->observer;
  run_static(plan, data.data(), o);
  return &plan;
}

std::vector<const Plan*> Program::plans() const {
  std::vector<const Plan*> all;
  for (const auto& e : impl_->plans) all.push_back(e.plan.get());
  return all;
}

PlannedMemory Program::memory() const {
  PlannedMemory m;
  std::vector<const void*> seen;
  for (const auto& e : impl_->plans) {
    m.recomputed = std::max(m.recomputed, e.plan->recomputed);
    m.whole = std::max({m.whole, e.plan->whole_bytes, e.plan->arena_bytes});
    if (std::find(seen.begin(), seen.end(), e.plan->arena.get()) != seen.end()) continue;
    seen.push_back(e.plan->arena.get());
    m.arena += e.plan->reserved_bytes;
  }
  return m;
}

void Program::set_observer(StepObserver* observer) { impl_->observer = observer; }

std::vector<Value> Program::run(const std::vector<Value>& inputs, uint64_t seed, uint64_t step,
                                const std::vector<char>& wanted, Guard* guard) {
  std::lock_guard lock(impl_->mutex);
  std::optional<Budget> budget = impl_->budget_for(inputs);
  Plan& plan = plan_for(inputs);
  if (budget) impl_->set_limits(*budget, plan);
  const SubgraphRunner sub = impl_->subgraph_runner(seed);
  RunOptions o = impl_->run_options(seed, step);
  o.subgraphs = &sub;
  o.guard = guard;
  o.observer = impl_->observer;
  return run_plan(plan, inputs, o, wanted);
}

std::vector<std::string> plain_passes() {
  return {"recognise",        "identity",    "fold_norm",    "layout",    "fuse_norm",
          "fuse_loss",        "join_slices", "fuse_matmul",  "recompute", "scale_updates",
          "fuse_elementwise", "row_updates", "group_updates"};
}

NotFiniteValue Program::trace_not_finite(const std::vector<Value>& inputs, uint64_t seed,
                                         uint64_t step, const Guard& guard) {
  {  // node by node as the file has them: a fused node has no name that its author knows
    ProgramOptions plain = impl_->options;
    plain.limits.memory = 0;
    plain.skip_passes = plain_passes();
    const GradientNames names;
    Program copy(graph_.clone(), impl_->updates, impl_->state, impl_->pool, plain);
    NotFiniteValue found = copy.trace(inputs, seed, step, guard.loss_output, kNone);
    if (!found.origin.empty()) return found;
  }
  return trace(inputs, seed, step, guard.loss_output, guard.bad);
}

void Program::read_gradients(const std::vector<Value>& inputs, uint64_t seed, uint64_t step,
                             const GradientReader& read) {
  ProgramOptions plain = impl_->options;
  plain.limits.memory = 0;
  plain.skip_passes = plain_passes();
  Program copy(graph_.clone(), impl_->updates, impl_->state, impl_->pool, plain);
  Plan& plan = copy.plan_for(inputs);
  const SubgraphRunner sub = copy.impl_->subgraph_runner(seed);
  RunOptions o = copy.impl_->run_options(seed, step);
  o.subgraphs = &sub;
  o.assign_updates = false;
  run_plan(plan, inputs, o);
  show_gradients(plan, read);
}

NotFiniteValue Program::trace(const std::vector<Value>& inputs, uint64_t seed, uint64_t step,
                              int loss, ValueId bad) {
  std::lock_guard lock(impl_->mutex);
  std::optional<Budget> budget = impl_->budget_for(inputs);
  Plan& plan = plan_for(inputs);
  if (budget) impl_->set_limits(*budget, plan);
  const SubgraphRunner sub = impl_->subgraph_runner(seed);
  NotFiniteTrace trace(plan, inputs);
  std::function<void(const Step&, ValueId, const Tensor&)> inspect =
      [&](const Step& s, ValueId v, const Tensor& t) { trace.record(s, v, t); };
  RunOptions o = impl_->run_options(seed, step);
  o.subgraphs = &sub;
  o.inspect = &inspect;
  o.assign_updates = false;
  run_plan(plan, inputs, o);
  if (bad == kNone) bad = trace.first_bad(loss < 0 ? kNone : plan.graph.outputs[size_t(loss)]);
  if (bad == kNone) return {};
  return {trace.name(bad), trace.origin(bad)};
}

}  // namespace onnxtrain
