// From a model to a Training: state variables, programs; and back to a model.
#include <algorithm>
#include <functional>
#include <string_view>
#include <unordered_map>

#include "core/thread_count.hpp"
#include "engine/initial_values.hpp"
#include "engine/target_shapes.hpp"
#include "engine/training_section.hpp"
#include "graph/reads.hpp"

namespace onnxtrain {

namespace {

bool is_read(const Model& m, const std::string& name) {
  for (const auto& t : m.training)
    for (const Node& n : t.algorithm.nodes)
      for (ValueId v : t.algorithm.reads(n))
        if (t.algorithm.value_name(v) == name) return true;
  return false;
}

// Metadata names the learning rate; otherwise it is an initializer read as R by an optimizer. What
// no step reads (Rprop begins with it and then has steps of its own) is not written to files.
std::string learning_rate_name(const Model& m) {
  auto it = m.metadata.find("onnxtrain.rate");
  if (it != m.metadata.end() && m.initializer(it->second) && is_read(m, it->second))
    return it->second;
  for (const auto& t : m.training)
    for (const Node& n : t.algorithm.nodes) {
      bool optimizer = n.domain == kTrainingDomain && n.op != "Gradient";
      if (!optimizer || n.inputs.empty() || n.inputs[0] == kNone) continue;
      const ValueDef& d = t.algorithm.value(n.inputs[0]);
      if (d.constant.defined() || d.producer < 0)
        if (m.initializer(d.name)) return d.name;
    }
  return {};
}

// What an optimizer begins with is zero and not yet in memory: it comes while the step is planned.
std::vector<std::pair<std::shared_ptr<void>, size_t>> blocks_of_zero(const Model& given,
                                                                     const State& state) {
  std::vector<std::pair<std::shared_ptr<void>, size_t>> blocks;
  auto collect = [&](const Graph& g) {
    for (const ValueDef& d : g.values) {
      if (!d.constant.defined() || !are_zero_pages(d.constant.owner()) || !state.has(d.name))
        continue;
      const Tensor& t = state.get(d.name);
      blocks.emplace_back(t.owner(), t.bytes());
    }
  };
  collect(given.main);
  for (const TrainingStep& t : given.training) collect(t.algorithm);
  return blocks;
}

// What a step reads of a state variable is its old value, also when it hands that out or assigns it
// to another variable as it is: such a value is copied before anything is written.
ValueId as_it_was(Graph& g, ValueId v) {
  if (g.value(v).state.empty()) return v;
  Node n;
  n.op = "Identity";
  n.version = 13;
  n.name = g.unique_name(g.value_name(v) + "_before");
  n.inputs = {v};
  const ValueId copy = g.add_node(std::move(n), 1, g.value_name(v) + "_before")[0];
  g.value(copy).type = TypeInfo::tensor(g.value(v).constant.dtype(), g.value(v).constant.shape());
  return copy;
}

// Drops what nothing needs (`keep` is needed); the inputs that something reads then.
std::vector<ValueId> inputs_read(Graph& g, const std::vector<ValueId>& keep) {
  g.remove_dead(keep);
  const std::vector<char> used = values_used(g, keep);
  std::vector<ValueId> inputs;
  for (ValueId v : g.inputs)
    if (used[size_t(v)] && !g.value(v).constant.defined()) inputs.push_back(v);
  return inputs;
}

// An input that several sections read counts once.
size_t slot_of(std::vector<ValueDef>& slots, const ValueDef& d) {
  for (size_t k = 0; k < slots.size(); ++k)
    if (slots[k].name == d.name) return k;
  slots.push_back(d);
  return slots.size() - 1;
}

}  // namespace

std::vector<ValueDef> training_inputs(const Model& m) {
  std::vector<ValueDef> all;
  for (const TrainingStep& step : m.training) {
    Graph g = combine(m.main, step);
    std::vector<ValueId> keep;
    for (const auto& [key, value] : step.update_binding)
      if (const ValueId v = g.find(value); v != kNone) keep.push_back(v);
    g.outputs.resize(step.algorithm.outputs.size());
    for (ValueId v : inputs_read(g, keep)) slot_of(all, g.value(v));
  }
  return all;
}

Training::Training(std::shared_ptr<const Model> model, uint64_t seed, ProgramOptions options)
    : initial_(std::make_unique<InitialValues>()),
      state_(std::make_shared<State>()),
      options_(std::move(options)),
      seed_(seed) {
  if (model->training.empty())
    model_error("OT1210", "the model carries no training (training_info is empty)",
                "make one:  onnxtrain prepare model.onnx -o model.train.onnx");
  int threads = thread_count(options_.threads);
  pool_ = std::make_shared<ThreadPool>(threads);
  take_state(*model, model.use_count() == 1);
  options_.memory_beside = state_->bytes();
  options_.memory_shares = model_->training.size();
  for (const TrainingStep& step : model_->training) add_algorithm(step);
  auto blocks = blocks_of_zero(*model, *state_);
  model.reset();  // giving memory back would wait for pages that come
  algorithms_.front()->state_pages.start(std::move(blocks));
}

// Copies the state variables. The model kept here has the copies as its values: when the given
// model goes, its weights go with it. `whole`: the model is the trainer's alone; what was read from
// a file for it, and for nobody else, becomes the state without a copy.
void Training::take_state(const Model& given, bool whole) {
  struct Initializer {
    const Tensor* value = nullptr;
    long holders = 0;  // values of this name with this memory
  };
  std::unordered_map<std::string_view, Initializer> initializers;
  auto collect = [&](const Graph& g) {
    for (const ValueDef& d : g.values) {
      if (!d.constant.defined()) continue;
      Initializer& i = initializers[d.name];
      if (!i.value) i.value = &d.constant;
      i.holders += i.value->owner() == d.constant.owner();
    }
  };
  collect(given.main);
  for (const TrainingStep& t : given.training) collect(t.algorithm);
  std::vector<std::string> names = given.state_names();
  lr_name_ = learning_rate_name(given);
  if (!lr_name_.empty() && std::find(names.begin(), names.end(), lr_name_) == names.end())
    names.push_back(lr_name_);
  std::vector<std::pair<std::string, const Tensor*>> values;
  for (const auto& name : names) {
    auto it = initializers.find(name);
    if (it == initializers.end())
      model_error("OT1307",
                  cat("the bindings name a state variable '", name, "' that is no initializer"));
    const auto& [value, holders] = it->second;
    initial_->remember(name, *value);
    const std::shared_ptr<void>& memory = value->owner();
    if (whole && memory.use_count() == holders && memory.get() == value->data() &&
        origin_of(memory))
      state_->adopt(name, *value);
    else
      values.emplace_back(name, value);
  }
  state_->add(values, *pool_);
  auto own = std::make_shared<Model>(given);
  own->replace_initializers(
      [&](const std::string& name) { return state_->has(name) ? state_->get(name) : Tensor(); });
  model_ = std::move(own);
}

void Training::add_algorithm(const TrainingStep& step) {
  Graph g = combine(model_->main, step);
  size_t own = step.algorithm.outputs.size();
  for (ValueDef& d : g.values)
    if (d.constant.defined() && d.name == lr_name_) d.state = lr_name_;
  std::vector<std::pair<ValueId, std::string>> updates;
  std::vector<ValueId> keep;
  for (const auto& [key, value] : step.update_binding) {
    ValueId v = g.find(value);
    if (v == kNone)
      model_error("OT1309",
                  cat("update_binding of '", key, "' names '", value, "', which does not exist"));
    v = as_it_was(g, v);
    updates.emplace_back(v, key);
    keep.push_back(v);
  }
  auto a = std::make_unique<Algorithm>();
  a->loss = find_loss(g, own);
  for (size_t k = 0; k < own; ++k) {
    a->outputs.push_back(g.value_name(g.outputs[k]));
    a->is_state.push_back(std::find(keep.begin(), keep.end(), g.outputs[k]) != keep.end());
    g.outputs[k] = as_it_was(g, g.outputs[k]);
  }
  g.outputs.resize(own);
  g.inputs = inputs_read(g, keep);
  for (ValueId v : g.inputs) a->inputs.push_back(g.value(v));
  a->fed.resize(a->inputs.size());
  a->arrays.resize(a->inputs.size());
  for (const ValueDef& d : a->inputs) a->slots.push_back(slot_of(slots_, d));
  a->updates = updates;
  ProgramOptions options = options_;
  options.targets = elementwise_targets(*model_, step);
  a->program = std::make_unique<Program>(std::move(g), std::move(updates), state_, pool_,
                                         std::move(options));
  algorithms_.push_back(std::move(a));
}

Training::~Training() = default;

void Training::initialize() {
  std::vector<std::pair<std::string, Tensor>> first;  // all of them, or none when one is gone
  for (const auto& name : model_->state_names()) first.emplace_back(name, initial_->get(name));
  for (const auto& [name, value] : first) state_->set(name, value);
  for (const TrainingStep& step : model_->training) {
    const Graph& g = step.initialization;
    if (g.outputs.empty()) continue;
    Program p(g.clone(), {}, std::make_shared<State>(), pool_, options_);
    std::vector<Value> out = p.run({}, seed_, 0);
    for (const auto& [key, value] : step.initialization_binding)
      for (size_t k = 0; k < g.outputs.size(); ++k)
        if (g.value_name(g.outputs[k]) == value) state_->set(key, std::get<Tensor>(out[k]));
  }
  step_count_ = 0;
}

Model Training::snapshot() const {
  Model m = *model_;
  std::unordered_map<std::string, Tensor> copies;
  for (const auto& name : state_->names()) copies.emplace(name, state_->get(name).clone());
  m.replace_initializers([&](const std::string& name) {
    auto it = copies.find(name);
    return it == copies.end() ? Tensor() : it->second;
  });
  return m;
}

std::optional<Tensor> Training::initial(const std::string& name) const {
  return initial_->find(name);
}

PlannedMemory Training::memory() const {
  PlannedMemory all;
  all.state = state_->bytes();
  if (const Shards s = shards(); !s.of_rank.empty())
    all.state -= s.bytes - s.of_rank[size_t(communicator_->rank())];
  for (const auto& a : algorithms_) {
    const PlannedMemory m = a->blocks ? a->blocks->memory() : a->program->memory();
    all.arena += m.arena;
    all.whole += m.whole;
    all.recomputed += m.recomputed;
  }
  return all;
}

}  // namespace onnxtrain
