// Datasets for a training.
#include "run/feeds.hpp"

#include <algorithm>

#include "model/batch.hpp"
#include "model/class_labels.hpp"
#include "run/data_spec.hpp"
#include "run/scores.hpp"
#include "run/target_check.hpp"

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

void describe_inputs(const Model& m, const std::vector<ValueDef>& inputs, OpenOptions& o) {
  o.classes = describe_scores(m).classes;
  for (const ValueDef& d : inputs) input_spec(d);  // can it be fed at all?
  for (const ValueDef& d : inputs) {
    if (is_target(m, d.name)) continue;
    const Shape dims = input_spec(d).dims;
    if (dims.size() > 1 &&
        std::all_of(dims.begin() + 1, dims.end(), [](int64_t n) { return n > 0; }))
      o.x_shape.assign(dims.begin() + 1, dims.end());
    if (o.x_shape.size() == 1) o.csv.width = o.x_shape[0];
    return;
  }
}

namespace {

bool is_whole_number(const std::string& s) {
  const size_t sign = s.starts_with("-") ? 1 : 0;
  return s.size() > sign && s.find_first_not_of("0123456789", sign) == std::string::npos;
}

[[noreturn]] void unknown_class(const Dataset& data, const std::string& column, int64_t row,
                                const std::string& name, const std::vector<std::string>& classes) {
  data_error(
      "OT2114",
      cat("class '", name, "' at row ", with_commas(data.column(column)->source_row(row)), " of '",
          column, "' is not among the classes of the training: ", listed(classes, 20)),
      "correct the value or remove the row; a new class needs a new training");
}

// Labels of data get the numbers that their names have in training: text, folders, and whole
// numbers when these are names themselves.
Dataset with_classes(Dataset data, const std::string& column,
                     const std::vector<std::string>& classes, int64_t offset) {
  std::vector<std::string> here = data.class_names(column);
  if (classes.empty() || here == classes) return data;
  const bool numbers = std::all_of(classes.begin(), classes.end(), is_whole_number);
  if (here.empty() && (!numbers || data.column(column)->row_elements() != 1)) return data;
  const Tensor all = data.gather_all(column);
  if (!dtype_is_integer(all.dtype()) && here.empty()) return data;  // refused by its type
  std::vector<int64_t> ids = all.to_ints();
  for (size_t row = 0; row < ids.size(); ++row) {
    const std::string name =
        here.empty() ? std::to_string(ids[row] + offset) : here.at(size_t(ids[row]));
    const auto at = std::find(classes.begin(), classes.end(), name);
    if (at == classes.end()) unknown_class(data, column, int64_t(row), name, classes);
    ids[row] = at - classes.begin() - (here.empty() ? offset : 0);
  }
  data.set(column, memory_column(Tensor::vector(ids)));
  data.set_class_names(column, classes);
  return data;
}

// Which column feeds what: what the user said, what the run was trained with, the targets of a
// table, then by name.
std::map<std::string, std::string> columns_for(const Dataset& data,
                                               const std::vector<std::string>& inputs,
                                               const std::vector<std::string>& targets,
                                               const FeedOptions& o) {
  std::map<std::string, std::string> map = o.map;
  auto among = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const auto& [input, column] : o.usual)
    if (map.count(input) == 0 && data.has(column) &&
        (among(inputs, input) || among(targets, input)))
      map[input] = column;
  const std::vector<std::string>& named = data.targets();
  if (targets.size() == 1 && !named.empty()) {
    map.try_emplace(targets[0], "y");  // whatever other columns are called
  } else if (targets.size() == named.size()) {
    for (size_t k = 0; k < targets.size(); ++k)
      if (data.has(named[k])) map.try_emplace(targets[k], named[k]);
  }
  return match_columns(data, inputs, targets, map);
}

}  // namespace

AdaptOptions options_for(const FeedOptions& o, const std::string& input, bool target) {
  AdaptOptions here = o.adapt;
  here.target = target;
  if (target) here.scale = "none";
  if (here.scale != "standard") return here;
  here.scale = "none";
  if (const auto it = o.standard.find(input); it != o.standard.end()) {
    here.mean = it->second.mean;
    here.std = it->second.std;
  }
  return here;
}

LoadedData feeds_for(const Dataset& given, const Model& m, const std::vector<ValueDef>& all,
                     const FeedOptions& o) {
  require_rows_first(m.main);
  std::vector<std::string> inputs, targets;
  for (const ValueDef& d : all) (is_target(m, d.name) ? targets : inputs).push_back(d.name);
  const Scores scores = describe_scores(m);
  const std::map<std::string, std::string> columns = columns_for(given, inputs, targets, o);
  std::vector<std::string> wanted;
  for (const auto& [name, column] : columns) wanted.push_back(column);
  Dataset data = given.used(wanted);
  if (!targets.empty())
    data = with_classes(std::move(data), columns.at(targets[0]),
                        o.classes.empty() ? class_labels(m.main) : o.classes, o.adapt.label_offset);
  LoadedData out;
  Adapted first;
  LabelSummary summary;
  bool has_labels = false;
  for (const ValueDef& d : all) {
    const bool target = is_target(m, d.name);
    AdaptOptions here = options_for(o, d.name, target);
    const bool first_target = target && out.feeds.label.empty();
    if (first_target) out.feeds.label = d.name;
    const bool labels = target && dtype_is_integer(d.type.elem);
    if (labels && !here.ignore_index) here.ignore_index = scores.ignore_index;
    Adapted a;
    try {
      // only the first target is known to be compared with the output
      a = labels ? adapt_labels(data, columns.at(d.name),
                                {input_spec(d), scores.output, first_target ? scores.classes : 0},
                                here, summary)
                 : adapt_input(data, columns.at(d.name), input_spec(d), here);
    } catch (const Error& e) {
      if (!first_target) throw;
      rethrow_for_target(e, m, data, columns.at(d.name));
    }
    if (labels) out.labels = labels_by_row(*a.column);
    has_labels |= labels;
    if (first_target) out.target = target_facts(data, columns.at(d.name), *a.column);
    if (!inputs.empty() && d.name == inputs[0]) first = a;
    out.feeds.names.push_back(d.name);
    out.feeds.columns.push_back(a.column);
  }
  note_spec(data, columns, inputs, out.feeds.label, o, out.metadata);
  out.notes = data.notes();
  if (has_labels && summary.classes > 0 && summary.min == 1 && o.adapt.label_offset == 0 &&
      scores.classes > 0)
    out.notes.push_back(cat("no row has class 0; if the labels count from 1:  --label-offset -1"));
  out.line = data_line(data, first, has_labels ? &summary : nullptr);
  return out;
}

Value fitted(const Model& m, const ValueDef& input, const Value& given, bool as_trained) {
  const Tensor* t = std::get_if<Tensor>(&given);
  if (!t || t->dtype() == DType::kString) return given;  // text, sequences: as they are
  Dataset data = Dataset::from_tensors({{input.name, *t}});
  const bool target = is_target(m, input.name);
  FeedOptions feed;
  if (as_trained) follow_scale(data_spec(m.metadata), feed);
  AdaptOptions o = options_for(feed, input.name, target);
  const bool label = target && dtype_is_integer(input.type.elem);
  const InputSpec spec = input_spec(input);
  data.set(input.name, (label ? adapt_label_column(data, input.name, spec, o)
                              : adapt_input(data, input.name, spec, o))
                           .column);
  return data.gather_all(input.name);
}

}  // namespace onnxtrain::run
