// Datasets for a training.
#include "train/feeds.hpp"

#include <algorithm>

namespace onnxtrain {

InputSpec input_spec(const ValueDef& d) {
  InputSpec s;
  s.name = d.name;
  s.dtype = d.type.elem;
  if (d.type.shape)
    for (const Dim& x : *d.type.shape) s.dims.push_back(x.known() ? x.value : -1);
  if (!s.dims.empty()) s.dims[0] = -1;
  return s;
}

namespace {

// Inputs that the main graph has are data, the others are targets.
bool is_target(const Model& m, const std::string& name) {
  std::vector<std::string> inputs = m.input_names();
  return std::find(inputs.begin(), inputs.end(), name) == inputs.end();
}

int64_t classes_of(const Model& m, std::string& output) {
  for (ValueId v : m.main.outputs) {
    const TypeInfo& t = m.main.value(v).type;
    if (!t.is_tensor() || !dtype_is_float(t.elem) || !t.shape || t.shape->size() < 2) continue;
    output = m.main.value_name(v);
    return (*t.shape)[1].known() ? (*t.shape)[1].value : 0;
  }
  return 0;
}

}  // namespace

void describe_inputs(const Training& t, OpenOptions& o) {
  std::string output;
  o.classes = classes_of(t.source(), output);
  for (const auto& name : t.input_names(0)) {
    if (is_target(t.source(), name)) continue;
    Shape dims = input_spec(t.input(0, name)).dims;
    if (dims.size() > 1 &&
        std::all_of(dims.begin() + 1, dims.end(), [](int64_t d) { return d > 0; }))
      o.x_shape.assign(dims.begin() + 1, dims.end());
    return;
  }
}

LoadedData feeds_for(const Dataset& data, const Training& t, const FeedOptions& o) {
  const Model& m = t.source();
  std::vector<std::string> inputs, targets;
  for (const auto& name : t.input_names(0)) (is_target(m, name) ? targets : inputs).push_back(name);
  std::string output;
  int64_t classes = classes_of(m, output);
  std::map<std::string, std::string> columns = match_columns(data, inputs, targets, o.map);
  LoadedData out;
  Adapted first;
  LabelSummary summary;
  bool has_labels = false;
  for (const auto& name : t.input_names(0)) {
    const ValueDef& d = t.input(0, name);
    Adapted a;
    if (is_target(m, name) && dtype_is_integer(d.type.elem)) {
      a = adapt_labels(data, columns.at(name), {input_spec(d), output, classes}, o.adapt, summary);
      out.labels = labels_by_row(*a.column);
      has_labels = true;
    } else {
      AdaptOptions here = o.adapt;
      if (is_target(m, name)) here.scale = "none";
      a = adapt_input(data, columns.at(name), input_spec(d), here);
    }
    if (is_target(m, name) && out.feeds.label.empty()) out.feeds.label = name;
    if (!inputs.empty() && name == inputs[0]) first = a;
    out.feeds.names.push_back(name);
    out.feeds.columns.push_back(a.column);
  }
  out.line = data_line(data, first, has_labels ? &summary : nullptr);
  return out;
}

}  // namespace onnxtrain
