// Datasets for a training.
#include "run/feeds.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "model/batch.hpp"
#include "run/scores.hpp"

namespace onnxtrain {

InputSpec input_spec(const ValueDef& d) {
  if (!d.type.is_tensor() || d.type.elem == DType::kString)
    data_error("OT2112",
               cat("input '", d.name, "' takes ", to_string(d.type), "; rows of data are numbers"),
               "give batches one after the other from Python:  ot.Trainer(MODEL).fit(iterable)");
  InputSpec s;
  s.name = d.name;
  s.dtype = d.type.elem;
  if (d.type.shape)
    for (const Dim& x : *d.type.shape) s.dims.push_back(x.known() ? x.value : -1);
  if (!s.dims.empty()) s.dims[0] = -1;
  return s;
}

namespace {

// What `predict` needs to treat new data the same way.
void note_for_predict(const Dataset& data, const std::map<std::string, std::string>& columns,
                      const std::vector<std::string>& inputs, const FeedOptions& o,
                      LoadedData& out) {
  auto& m = out.metadata;
  m["onnxtrain.scale"] = o.adapt.scale;
  m["onnxtrain.layout"] = o.adapt.nhwc ? "nhwc" : "nchw";
  if (o.adapt.label_offset) m["onnxtrain.label_offset"] = std::to_string(o.adapt.label_offset);
  if (!out.feeds.label.empty()) {
    const auto& names = data.class_names(columns.at(out.feeds.label));
    if (!names.empty()) m["onnxtrain.classes"] = nlohmann::json(names).dump();
  }
  if (inputs.empty()) return;
  const auto& features = data.feature_names(columns.at(inputs[0]));
  if (!features.empty()) m["onnxtrain.features"] = nlohmann::json(features).dump();
}

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
  for (const auto& name : t.input_names(0)) input_spec(t.input(0, name));  // can it be fed at all?
  for (const auto& name : t.input_names(0)) {
    if (is_target(t.source(), name)) continue;
    Shape dims = input_spec(t.input(0, name)).dims;
    if (dims.size() > 1 &&
        std::all_of(dims.begin() + 1, dims.end(), [](int64_t d) { return d > 0; }))
      o.x_shape.assign(dims.begin() + 1, dims.end());
    return;
  }
}

namespace {

// Text labels of another file get the numbers that their names had in training.
Dataset with_classes(Dataset data, const std::string& column,
                     const std::vector<std::string>& classes) {
  const std::vector<std::string> here = data.class_names(column);
  if (classes.empty() || here.empty() || here == classes) return data;
  std::vector<int64_t> to;
  for (const std::string& name : here) {
    auto at = std::find(classes.begin(), classes.end(), name);
    if (at == classes.end())
      data_error("OT2114", cat("class '", name, "' of column '", column,
                               "' was not among the classes in training: ", listed(classes)));
    to.push_back(at - classes.begin());
  }
  std::vector<int64_t> ids = data.gather_all(column).to_ints();
  for (int64_t& id : ids) id = to.at(size_t(id));
  data.set(column, memory_column(Tensor::vector(ids)));
  data.set_class_names(column, classes);
  return data;
}

}  // namespace

LoadedData feeds_for(const Dataset& given, const Training& t, const FeedOptions& o) {
  const Model& m = t.source();
  require_rows_first(m.main);
  std::vector<std::string> inputs, targets;
  const auto all = all_inputs(t);
  for (const auto& [name, d] : all) (is_target(m, name) ? targets : inputs).push_back(name);
  const Scores scores = describe_scores(m);
  std::map<std::string, std::string> columns = match_columns(given, inputs, targets, o.map);
  std::vector<std::string> wanted;
  for (const auto& [name, column] : columns) wanted.push_back(column);
  const Dataset used = given.used(wanted);
  const Dataset data =
      targets.empty() ? used : with_classes(used, columns.at(targets[0]), o.classes);
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
      // only the first target is known to be compared with the output
      bool first_target = out.feeds.label.empty();
      a = adapt_labels(data, columns.at(name),
                       {input_spec(d), scores.output, first_target ? scores.classes : 0}, here,
                       summary);
      out.labels = labels_by_row(*a.column);
      has_labels = true;
    } else {
      AdaptOptions here = o.adapt;
      here.target = is_target(m, name);
      if (here.target) here.scale = "none";
      a = adapt_input(data, columns.at(name), input_spec(d), here);
    }
    if (is_target(m, name) && out.feeds.label.empty()) out.feeds.label = name;
    if (!inputs.empty() && name == inputs[0]) first = a;
    out.feeds.names.push_back(name);
    out.feeds.columns.push_back(a.column);
  }
  note_for_predict(data, columns, inputs, o, out);
  out.notes = data.notes();
  out.line = data_line(data, first, has_labels ? &summary : nullptr);
  return out;
}

void options_from_metadata(const Model& m, FeedOptions& o, CsvOptions& csv) {
  auto text = [&](const char* key) {
    auto it = m.metadata.find(key);
    return it == m.metadata.end() ? std::string() : it->second;
  };
  if (std::string scale = text("onnxtrain.scale"); o.adapt.scale == "auto" && !scale.empty())
    o.adapt.scale = scale;
  if (text("onnxtrain.layout") == "nhwc") o.adapt.nhwc = true;
  if (std::string offset = text("onnxtrain.label_offset");
      !offset.empty() && o.adapt.label_offset == 0)
    o.adapt.label_offset = std::strtoll(offset.c_str(), nullptr, 10);
  // metadata is the file's word, not ours: anything else than a list of names is passed over
  auto names = [&](const char* key, std::vector<std::string>& out) {
    auto list = nlohmann::json::parse(text(key), nullptr, false);
    if (!list.is_array() || !out.empty()) return;
    for (const auto& name : list)
      if (name.is_string()) out.push_back(name);
  };
  names("onnxtrain.features", csv.features);
  names("onnxtrain.classes", o.classes);
}

}  // namespace onnxtrain
