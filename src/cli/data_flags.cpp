// Datasets for a training: columns matched by name, adapted to the inputs' types and shapes.
#include "cli/data_flags.hpp"

#include <algorithm>

namespace onnxtrain::cli {

void DataFlags::add_to(CLI::App* c, bool required) {
  const char* g = "Data";
  auto* o = c->add_option("--data", data, "npy, npz, idx, csv file, a folder, or synthetic:...")->group(g);
  if (required) o->required();
  c->add_option("--target", target, "csv: the target column")->group(g);
  c->add_option("--map", map, "INPUT=KEY: which array feeds which input")->group(g);
  c->add_option("--scale", scale, "auto|none|MEAN,STD")->group(g);
  c->add_option("--layout", layout, "nchw|nhwc: how images lie in the data")->check(CLI::IsMember({"nchw", "nhwc"}))->group(g);
  c->add_option("--label-offset", label_offset, "added to every class label")->group(g);
}

namespace {

InputSpec spec_of(const ValueDef& d) {
  InputSpec s;
  s.name = d.name;
  s.dtype = d.type.elem;
  if (d.type.shape)
    for (const Dim& x : *d.type.shape) s.dims.push_back(x.known() ? x.value : -1);
  if (!s.dims.empty()) s.dims[0] = -1;
  return s;
}

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

LoadedData load_data(const DataFlags& f, const std::string& spec, const Training& t, DataPart part) {
  const Model& m = t.source();
  std::vector<std::string> inputs, targets;
  for (const auto& name : t.input_names(0)) (is_target(m, name) ? targets : inputs).push_back(name);
  OpenOptions open;
  open.part = part;
  open.csv.target = f.target;
  std::string output;
  open.classes = classes_of(m, output);
  if (!inputs.empty()) {
    Shape dims = spec_of(t.input(0, inputs[0])).dims;
    if (dims.size() > 1 && std::all_of(dims.begin() + 1, dims.end(), [](int64_t d) { return d > 0; }))
      open.x_shape.assign(dims.begin() + 1, dims.end());
  }
  Dataset data = open_dataset(spec, open);
  std::map<std::string, std::string> map;
  for (const std::string& s : f.map) {
    size_t eq = s.find('=');
    if (eq == std::string::npos) usage_error("OT0003", cat("--map takes INPUT=KEY, got '", s, "'"));
    map[s.substr(0, eq)] = s.substr(eq + 1);
  }
  std::map<std::string, std::string> columns = match_columns(data, inputs, targets, map);
  AdaptOptions adapt;
  adapt.scale = f.scale;
  adapt.nhwc = f.layout == "nhwc";
  adapt.label_offset = f.label_offset;
  LoadedData out;
  Adapted first;
  LabelSummary summary;
  bool has_labels = false;
  for (const auto& name : t.input_names(0)) {
    const ValueDef& d = t.input(0, name);
    InputSpec input = spec_of(d);
    Adapted a;
    if (is_target(m, name) && dtype_is_integer(d.type.elem)) {
      a = adapt_labels(data, columns.at(name), {input, output, open.classes}, adapt, summary);
      out.labels = labels_by_row(*a.column);
      has_labels = true;
    } else {
      AdaptOptions here = adapt;
      if (is_target(m, name)) here.scale = "none";
      a = adapt_input(data, columns.at(name), input, here);
    }
    if (is_target(m, name) && out.feeds.label.empty()) out.feeds.label = name;
    if (!inputs.empty() && name == inputs[0]) first = a;
    out.feeds.names.push_back(name);
    out.feeds.columns.push_back(a.column);
  }
  out.line = data_line(data, first, has_labels ? &summary : nullptr);
  return out;
}

}  // namespace onnxtrain::cli
