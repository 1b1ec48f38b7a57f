// Datasets for a training.
#include "run/feeds.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "model/batch.hpp"
#include "run/scores.hpp"

namespace onnxtrain::run {

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

FeedColumns FeedColumns::subset(const std::vector<int64_t>& rows) const {
  FeedColumns f = *this;
  auto shared = std::make_shared<const std::vector<int64_t>>(rows);
  for (ColumnPtr& c : f.columns) c = subset_column(c, shared);
  return f;
}

bool is_target(const Model& m, const std::string& name) {
  const std::vector<std::string> inputs = m.input_names();
  return std::find(inputs.begin(), inputs.end(), name) == inputs.end();
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

}  // namespace

void describe_inputs(const Model& m, const std::vector<ValueDef>& inputs, OpenOptions& o) {
  o.classes = describe_scores(m).classes;
  for (const ValueDef& d : inputs) input_spec(d);  // can it be fed at all?
  for (const ValueDef& d : inputs) {
    if (is_target(m, d.name)) continue;
    const Shape dims = input_spec(d).dims;
    if (dims.size() > 1 &&
        std::all_of(dims.begin() + 1, dims.end(), [](int64_t n) { return n > 0; }))
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
      data_error("OT2114",
                 cat("class '", name, "' of column '", column,
                     "' was not among the classes in training: ", listed(classes)),
                 "remove these rows, or train with them");
    to.push_back(at - classes.begin());
  }
  std::vector<int64_t> ids = data.gather_all(column).to_ints();
  for (int64_t& id : ids) id = to.at(size_t(id));
  data.set(column, memory_column(Tensor::vector(ids)));
  data.set_class_names(column, classes);
  return data;
}

}  // namespace

LoadedData feeds_for(const Dataset& given, const Model& m, const std::vector<ValueDef>& all,
                     const FeedOptions& o) {
  require_rows_first(m.main);
  std::vector<std::string> inputs, targets;
  for (const ValueDef& d : all) (is_target(m, d.name) ? targets : inputs).push_back(d.name);
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
  for (const ValueDef& d : all) {
    const bool target = is_target(m, d.name);
    AdaptOptions here = o.adapt;
    Adapted a;
    if (target && dtype_is_integer(d.type.elem)) {
      if (!here.ignore_index) here.ignore_index = scores.ignore_index;
      // only the first target is known to be compared with the output
      const bool first_target = out.feeds.label.empty();
      a = adapt_labels(data, columns.at(d.name),
                       {input_spec(d), scores.output, first_target ? scores.classes : 0}, here,
                       summary);
      out.labels = labels_by_row(*a.column);
      has_labels = true;
    } else {
      here.target = target;
      if (target) here.scale = "none";
      a = adapt_input(data, columns.at(d.name), input_spec(d), here);
    }
    if (target && out.feeds.label.empty()) out.feeds.label = d.name;
    if (!inputs.empty() && d.name == inputs[0]) first = a;
    out.feeds.names.push_back(d.name);
    out.feeds.columns.push_back(a.column);
  }
  note_for_predict(data, columns, inputs, o, out);
  out.notes = data.notes();
  out.line = data_line(data, first, has_labels ? &summary : nullptr);
  return out;
}

Value fitted(const Model& m, const ValueDef& input, const Value& given) {
  const Tensor* t = std::get_if<Tensor>(&given);
  if (!t || t->dtype() == DType::kString) return given;  // text, sequences: as they are
  Dataset data = Dataset::from_tensors({{input.name, *t}});
  AdaptOptions o;
  const bool target = is_target(m, input.name);
  if (target) o.scale = "none";
  const bool label = target && dtype_is_integer(input.type.elem);
  const InputSpec spec = input_spec(input);
  data.set(input.name, (label ? adapt_label_column(data, input.name, spec, o)
                              : adapt_input(data, input.name, spec, o))
                           .column);
  return data.gather_all(input.name);
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

}  // namespace onnxtrain::run
