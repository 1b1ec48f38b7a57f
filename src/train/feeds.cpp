// Datasets for a training.
#include "train/feeds.hpp"

#include <algorithm>

#include "train/scores.hpp"

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

// Inputs of all sections, each once: `fit` runs them one after the other on the same rows.
std::vector<std::pair<std::string, const ValueDef*>> all_inputs(const Training& t) {
  std::vector<std::pair<std::string, const ValueDef*>> all;
  for (int i = 0; i < t.algorithms(); ++i)
    for (const auto& name : t.input_names(i))
      if (std::none_of(all.begin(), all.end(), [&](const auto& x) { return x.first == name; }))
        all.emplace_back(name, &t.input(i, name));
  return all;
}

}  // namespace

void describe_inputs(const Training& t, OpenOptions& o) {
  o.classes = describe_scores(t.source()).classes;
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
  const auto all = all_inputs(t);
  for (const auto& [name, d] : all) (is_target(m, name) ? targets : inputs).push_back(name);
  const Scores scores = describe_scores(m);
  std::map<std::string, std::string> columns = match_columns(data, inputs, targets, o.map);
  LoadedData out;
  Adapted first;
  LabelSummary summary;
  bool has_labels = false;
  for (const auto& [name, declared] : all) {
    const ValueDef& d = *declared;
    Adapted a;
    if (is_target(m, name) && dtype_is_integer(d.type.elem)) {
      AdaptOptions here = o.adapt;
      if (!here.ignore_index) here.ignore_index = scores.ignore_index;
      a = adapt_labels(data, columns.at(name), {input_spec(d), scores.output, scores.classes}, here,
                       summary);
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
