// Look-ups over a model.
#include "model/model.hpp"

#include <string_view>
#include <unordered_set>

namespace onnxtrain {

namespace {

bool is_own(const Graph& g, ValueId v) {
  for (const auto& c : g.captures)
    if (c.inner == v) return false;
  return true;
}

}  // namespace

// Values of initializers and marks only: a change of what is computed goes through edit_main() and
// edit_algorithm().
template <class F>
void Model::each_graph(F&& f) {
  f(main_);
  for (TrainingStep& t : training) f(t.algorithm_);
}

std::vector<std::string> Model::state_names() const {
  std::vector<std::string> names;
  std::unordered_set<std::string_view> seen;
  auto add = [&](const std::vector<TrainingStep::Binding>& b) {
    for (const auto& [key, value] : b)
      if (seen.insert(key).second) names.push_back(key);
  };
  for (const auto& t : training) {
    add(t.initialization_binding);
    add(t.update_binding);
  }
  return names;
}

const Tensor* Model::initializer(const std::string& name) const {
  const Tensor* found = nullptr;
  auto look = [&](const Graph& g) {
    for (size_t k = 0; k < g.values.size() && !found; ++k)
      if (g.values[k].name == name && g.values[k].constant.defined()) found = &g.values[k].constant;
  };
  look(main);
  for (const TrainingStep& t : training) look(t.algorithm);
  return found;
}

void Model::set_initializer(const std::string& name, Tensor value) {
  bool found = false;
  each_graph([&](Graph& g) {
    for (size_t k = 0; k < g.values.size(); ++k) {
      ValueDef& v = g.values[k];
      if (v.name != name || !v.constant.defined() || !is_own(g, ValueId(k))) continue;
      if (v.constant.dtype() != value.dtype() || v.constant.shape() != value.shape())
        model_error(
            "OT1120",
            cat("'", name, "' is ", dtype_name(v.constant.dtype()), to_string(v.constant.shape()),
                ", the new value is ", dtype_name(value.dtype()), to_string(value.shape())),
            "give an array of this type and shape");
      v.constant = value;
      found = true;
    }
  });
  if (!found)
    model_error("OT1121", cat("the model has no initializer named '", name, "'"),
                "the names are in  onnxtrain info MODEL --weights");
}

void Model::replace_initializers(const std::function<Tensor(const std::string&)>& value) {
  each_graph([&](Graph& g) {
    for (ValueDef& d : g.values) {
      if (!d.constant.defined()) continue;
      if (Tensor t = value(d.name); t.defined()) d.constant = std::move(t);
    }
  });
}

std::vector<std::string> Model::input_names() const {
  std::vector<std::string> names;
  for (ValueId v : main.inputs)
    if (!main.value(v).constant.defined()) names.push_back(main.value_name(v));
  return names;
}

void Model::mark_state() {
  const std::vector<std::string> list = state_names();
  const std::unordered_set<std::string> names(list.begin(), list.end());
  each_graph([&](Graph& g) {
    for (ValueDef& v : g.values) {
      bool is_state = v.constant.defined() && names.count(v.name) != 0;
      v.state = is_state ? v.name : std::string();
    }
  });
}

}  // namespace onnxtrain
