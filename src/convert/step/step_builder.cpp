// Names, captures and bindings of a step under construction.
#include "convert/step/step_builder.hpp"

#include <algorithm>

#include "core/memory.hpp"

namespace onnxtrain {

namespace {

void collect_names(const Graph& g, std::set<std::string>& names) {
  for (const auto& v : g.values) names.insert(v.name);
  for (const Node& n : g.nodes)
    for (const auto& [key, a] : n.attrs)
      if (const GraphPtr* sub = std::get_if<GraphPtr>(&a)) collect_names(**sub, names);
}

}  // namespace

namespace {
int opset_of(const Model& m) {
  auto it = m.opsets.find("");
  return std::max(it == m.opsets.end() ? 0 : it->second, 13);
}
}  // namespace

StepBuilder::StepBuilder(Model& m, const OpTable& ops)
    : model_(m), ops_(ops), opset_(opset_of(m)), nodes_(graph_, ops, Node{}, {}, opset_) {
  graph_.name = m.main.name.empty() ? "training" : m.main.name + "_training";
  collect_names(m.main, names_);
  // sections do not see each other, but a state variable has one name in the whole model; the same
  // data may go to several sections
  std::set<std::string> data;
  for (const TrainingStep& t : m.training) {
    collect_names(t.algorithm, names_);
    for (ValueId v : t.algorithm.inputs) data.insert(t.algorithm.value_name(v));
  }
  for (const ValueDef& v : m.main.values) data.erase(v.name);
  for (const std::string& name : data) names_.erase(name);
  // the graph's own name maker avoids them all from the start
  for (const auto& name : names_) graph_.add_value(name);
  graph_.unique_name("");
  graph_.values.clear();
}

StepBuilder::StepBuilder(Model& m, const OpTable& ops, const TrainingStep& step)
    : StepBuilder(m, ops) {
  const Graph a = step.algorithm.clone();
  graph_.name = a.name;
  graph_.values = a.values;
  graph_.nodes = a.nodes;
  graph_.inputs = a.inputs;
  graph_.outputs = a.outputs;
  graph_.captures = a.captures;
  for (const auto& c : a.captures) here_[c.outer] = c.inner;
  scanned_ = graph_.values.size();
}

ValueId StepBuilder::from_main(ValueId outer) {
  if (outer == kNone) return kNone;
  auto it = here_.find(outer);
  if (it != here_.end()) return it->second;
  const ValueDef& d = main().value(outer);
  ValueId inner = graph_.add_value(d.name, d.type);
  ValueDef& here = graph_.value(inner);
  here.constant = d.constant;
  here.initializer = d.initializer;
  graph_.captures.push_back({outer, inner});
  here_[outer] = inner;
  return inner;
}

std::string StepBuilder::claim(const std::string& wanted) {
  for (; scanned_ < graph_.values.size(); ++scanned_) names_.insert(graph_.values[scanned_].name);
  std::string name = wanted;
  for (int k = 1; names_.count(name); ++k) name = cat(wanted, "_", k);
  names_.insert(name);
  return name;
}

ValueId StepBuilder::add_input(const std::string& wanted, TypeInfo type) {
  ValueId v = graph_.add_value(claim(wanted), std::move(type));
  graph_.inputs.push_back(v);
  return v;
}

ValueId StepBuilder::add_state(const std::string& wanted, Tensor initial) {
  ValueId v = graph_.add_constant(std::move(initial), claim(wanted));
  graph_.value(v).initializer = true;
  return v;
}

void StepBuilder::bind(const std::string& key, ValueId value) {
  for (auto& [k, v] : bindings_)
    if (k == key) {
      v = value;
      return;
    }
  bindings_.emplace_back(key, value);
}

ValueId StepBuilder::bound(const std::string& key) const {
  for (const auto& [k, v] : bindings_)
    if (k == key) return v;
  return kNone;
}

ValueId StepBuilder::cast(ValueId v, DType to) {
  if (graph_.value(v).type.elem == to) return v;
  ValueId y = nodes_.call("Cast", {v}, {{"to", int64_t(to)}});
  if (!graph_.value(y).type.is_tensor()) {
    TypeInfo t = graph_.value(v).type;
    t.kind = TypeInfo::Kind::kTensor;
    t.elem = to;
    set_type(y, t);
  }
  return y;
}

TrainingStep StepBuilder::finish(ValueId loss) {
  TrainingStep step;
  graph_.outputs = {loss};
  for (auto& [key, v] : bindings_) {
    bool own = std::none_of(graph_.captures.begin(), graph_.captures.end(),
                            [v = v](const auto& c) { return c.inner == v; });
    bool listed =
        std::find(graph_.outputs.begin(), graph_.outputs.end(), v) != graph_.outputs.end();
    if (!own || listed) {  // every assigned value is an output of its own
      TypeInfo t = graph_.value(v).type;
      v = nodes_.call("Identity", {v});
      set_type(v, t);
    }
    rename(v, key + "_new");
    graph_.outputs.push_back(v);
    step.update_binding.emplace_back(key, graph_.value_name(v));
  }
  graph_.renumber();
  name_nodes(main(), graph_);
  graph_.verify("prepare");
  step.edit_algorithm() = std::move(graph_);
  return step;
}

void StepBuilder::finish_again(TrainingStep& step) {
  graph_.remove_dead();
  name_nodes(main(), graph_);
  graph_.verify("set_schedule");
  step.edit_algorithm() = std::move(graph_);
}

namespace {

bool is_random(const Node& n) { return n.is("Dropout") || n.op.rfind("Random", 0) == 0; }

void settle_name(Node& n, std::set<std::string>& taken) {
  std::string base = n.name.empty() ? n.op : n.name, name = base;
  for (int k = 1; !taken.insert(name).second; ++k) name = cat(base, "_", k);
  n.name = name;
}

// Names in the bodies of the algorithm's own nodes; a body is a room of its own.
void name_bodies(Graph& g) {
  for (Node& n : g.nodes)
    for (auto& [key, a] : n.attrs)
      if (GraphPtr* sub = std::get_if<GraphPtr>(&a)) {
        auto copy = std::make_shared<Graph>((*sub)->clone());
        std::set<std::string> taken;
        for (bool random : {true, false})
          for (Node& inner : copy->nodes)
            if (is_random(inner) == random && !inner.name.empty()) settle_name(inner, taken);
        name_bodies(*copy);
        *sub = copy;
      }
}

}  // namespace

void name_nodes(const Graph& main, Graph& algorithm) {
  std::set<std::string> taken;
  for (const Node& n : main.nodes) taken.insert(n.name);
  for (bool random : {true, false})
    for (Node& n : algorithm.nodes)
      if (is_random(n) == random) settle_name(n, taken);
  name_bodies(algorithm);
}

Tensor scalar_tensor(double v, DType t) { return filled(t, {}, v); }

namespace {

Tensor zero_tensor(DType t, const Shape& shape) {
  std::shared_ptr<void> p = zero_pages(size_t(num_elements(shape)) * dtype_size(t));
  return Tensor(t, shape, p.get(), p);
}

}  // namespace

Tensor filled(DType t, const Shape& shape, double v) {
  constexpr int64_t kMany = 1 << 14;
  if (v == 0 && num_elements(shape) >= kMany && (t == DType::kFloat || t == DType::kDouble))
    return zero_tensor(t, shape);
  Tensor x(t, shape);
  dispatch<float, double, Half, BFloat16, int64_t, int32_t>(t, "an initial value", [&]<class T>() {
    std::fill_n(x.as<T>(), x.size(), T(compute_t<T>(v)));
  });
  return x;
}

}  // namespace onnxtrain
