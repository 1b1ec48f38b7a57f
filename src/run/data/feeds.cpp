// Datasets for a training.
#include "run/data/feeds.hpp"

#include <algorithm>
#include <set>

#include "core/text.hpp"
#include "data/images.hpp"
#include "model/batch.hpp"
#include "model/class_labels.hpp"
#include "model/scores.hpp"
#include "model/trained_outputs.hpp"
#include "run/data/data_spec.hpp"
#include "run/data/match_targets.hpp"
#include "run/data/raw_columns.hpp"
#include "run/data/target_check.hpp"

namespace onnxtrain::run {

InputSpec input_spec(const ValueDef& d) {
  if (!d.type.is_tensor())
    data_error("OT2112",
               cat("input '", d.name, "' takes ", to_string(d.type),
                   "; rows of data are numbers and text"),
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
    break;
  }
  o.images.wanted = takes_images(m, o);
  follow_image_rule(m, o);
}

namespace {

// Labels that the file writes, where its target takes class numbers: a training of its own (of
// from_sklearn, or written by hand) says itself what its target is.
std::vector<std::string> target_labels(const Model& m) {
  const auto loss = m.metadata.find("onnxtrain.loss");
  const bool own = loss == m.metadata.end() || loss->second == "custom";
  return own && !m.training.empty() ? std::vector<std::string>() : class_labels(m.main);
}

// "7", as a number is written; not "07".
bool is_whole_number(const std::string& s) {
  const size_t sign = s.starts_with("-") ? 1 : 0;
  return s.size() > sign && s.size() < 19 &&
         s.find_first_not_of("0123456789", sign) == std::string::npos &&
         std::to_string(std::stoll(s)) == s;
}

// "  labels that count from 0?  --label-offset 1": an offset with which all of them are classes.
std::string offset_hint(const std::vector<int64_t>& ids, const std::vector<std::string>& classes) {
  if (ids.empty() || !std::all_of(classes.begin(), classes.end(), is_whole_number)) return {};
  std::set<int64_t> known;
  for (const std::string& c : classes) known.insert(std::stoll(c));
  const int64_t first = *std::min_element(ids.begin(), ids.end()), by = *known.begin() - first;
  const bool fits =
      std::all_of(ids.begin(), ids.end(), [&](int64_t id) { return known.count(id + by) != 0; });
  return by != 0 && fits ? cat("labels that count from ", first, "?  --label-offset ", by)
                         : std::string();
}

[[noreturn]] void unknown_class(const std::string& where, const std::string& name,
                                const std::vector<std::string>& classes, const std::string& hint) {
  data_error("OT2114",
             cat("class '", name, "' at ", where,
                 " is not among the classes of the training: ", listed(classes, 20)),
             hint.empty() ? "correct the value or remove the row; a new class needs a new training"
                          : hint);
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
    if (at == classes.end())
      unknown_class(cat("row ", with_commas(data.column(column)->source_row(int64_t(row))), " of '",
                        column, "'"),
                    name, classes,
                    here.empty() && offset == 0 ? offset_hint(all.to_ints(), classes) : "");
    ids[row] = at - classes.begin() - (here.empty() ? offset : 0);
  }
  data.set(column, memory_column(Tensor::vector(ids)));
  data.set_class_names(column, classes);
  return data;
}

// Words for a run that knows numbers: which of them is which, nobody can tell.
void refuse_words(const Dataset& data, const std::string& column) {
  const std::vector<std::string>& words = data.class_names(column);
  if (words.empty() || std::all_of(words.begin(), words.end(), is_whole_number)) return;
  data_error(
      "OT2114",
      cat("the target holds the words ", listed(words, 10),
          "; the run was trained on class numbers, and which word is which number is not known"),
      "write the class numbers of the training into the column");
}

// Folders called 0, 1, 2, ... for a run that was trained on these numbers.
Dataset with_numbers(Dataset data, const std::string& column) {
  const std::vector<std::string> words = data.class_names(column);
  if (words.empty()) return data;
  std::vector<int64_t> ids = data.gather_all(column).to_ints();
  for (int64_t& id : ids) id = std::stoll(words.at(size_t(id)));
  data.set(column, memory_column(Tensor::vector(ids)));
  data.set_class_names(column, {});
  return data;
}

// Classes where the loss of an output learns numbers.
void refuse_text(const Dataset& data, const std::string& column, const std::string& target) {
  if (data.class_names(column).empty()) return;
  data_error("OT2184",
             cat("target '", column, "' holds text, and what learns from it ('", target,
                 "') takes numbers"),
             "a loss for classes:  --loss OUTPUT=cross_entropy");
}

// What the user and the run say about which column feeds what.
std::map<std::string, std::string> told(const FeedOptions& o) {
  std::map<std::string, std::string> map = o.map;
  map.insert(o.usual.begin(), o.usual.end());
  return map;
}

// Which column feeds what: what the user said, what the run was trained with, the targets of a
// table, then by name.
std::map<std::string, std::string> columns_for(const Dataset& data, const Model& m,
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
  if (targets.size() == 1 && !data.targets().empty())
    map.try_emplace(targets[0], data.target_column());  // whatever other columns are called
  else if (targets.size() > 1)
    match_targets(data, m, inputs, targets, map);
  return match_columns(data, inputs, targets, map);
}

// "of 7 columns, 5 numbers and 2 texts"; inputs: how many are columns.
std::string describe_kinds(const FeedColumns& f, size_t inputs) {
  size_t texts = 0;
  for (size_t k = 0; k < f.names.size(); ++k) texts += f.columns[k]->dtype() == DType::kString;
  const size_t numbers = inputs - texts;
  auto count = [](size_t n, const char* what) { return cat(n, " ", what, n == 1 ? "" : "s"); };
  if (texts == 0) return count(numbers, "number");
  return numbers == 0 ? count(texts, "text")
                      : cat(count(numbers, "number"), " and ", count(texts, "text"));
}

// Class numbers that are left out, and those that may count from 1.
void note_labels(const LabelSummary& summary, const Scores& scores, const FeedOptions& o,
                 LoadedData& out) {
  const std::optional<int64_t> ignored =
      o.adapt.ignore_index ? o.adapt.ignore_index : scores.ignore_index;
  if (ignored && *ignored >= 0 && *ignored < scores.classes)
    if (const auto n = std::count(out.labels.begin(), out.labels.end(), *ignored); n > 0)
      out.notes.push_back(cat(with_commas(n), " of ", with_commas(int64_t(out.labels.size())),
                              " rows have class ", *ignored,
                              ", which is ignored: nothing is learnt from them"));
  if (summary.classes > 0 && summary.min == 1 && ignored != 0 && o.adapt.label_offset == 0 &&
      scores.classes > 0 && o.classes.empty() && out.target.classes.empty())
    out.notes.push_back(cat("no row has class 0; if the labels count from 1:  --label-offset -1"));
}

}  // namespace

AdaptOptions options_for(const FeedOptions& o, const std::string& input, bool target) {
  AdaptOptions here = o.adapt;
  here.target = target;
  if (target) here.scale = "none";
  if (!is_measured_scale(here.scale)) return here;
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
  const std::map<std::string, std::string> columns = columns_for(given, m, inputs, targets, o);
  std::vector<std::string> wanted;
  for (const auto& [name, column] : columns) wanted.push_back(column);
  Dataset data = given.used(wanted);
  if (!targets.empty())
    data = with_classes(std::move(data), columns.at(targets[0]),
                        o.classes.empty() ? target_labels(m) : o.classes, o.adapt.label_offset);
  const bool classes = !targets.empty() && scores.classes > 1;
  if (classes && o.unnamed_classes && target_labels(m).empty()) {
    refuse_words(data, columns.at(targets[0]));
    data = with_numbers(std::move(data), columns.at(targets[0]));
  }
  LoadedData out;
  out.notes = data.notes();
  if (std::string note = matched_by_order(columns, inputs, told(o)); !note.empty())
    out.notes.push_back(std::move(note));
  if (!targets.empty())
    if (std::string note = class_order(data, columns.at(targets[0])); !note.empty())
      out.notes.push_back(std::move(note));
  if (classes && !o.classes.empty() && data.class_names(columns.at(targets[0])).empty())
    out.notes.push_back(cat("class numbers: 0 is '", o.classes[0], "', ", o.classes.size() - 1,
                            " is '", o.classes.back(), "'"));
  Adapted first;
  LabelSummary summary;
  bool has_labels = false, channels_last = false;
  for (const ValueDef& d : all) {
    const bool target = is_target(m, d.name);
    AdaptOptions here = options_for(o, d.name, target);
    here.missing = !target && takes_missing(m.main, m.main.find(d.name));
    const bool first_target = target && out.feeds.label.empty();
    if (first_target) out.feeds.label = d.name;
    const bool labels = target && dtype_is_integer(d.type.elem);
    if (labels && !here.ignore_index) here.ignore_index = scores.ignore_index;
    if (target && !labels && targets.size() > 1) refuse_text(data, columns.at(d.name), d.name);
    Adapted a;
    try {
      // only the first target is known to be compared with the output
      a = labels ? adapt_labels(data, columns.at(d.name),
                                {input_spec(d), scores.output, first_target ? scores.classes : 0},
                                here, summary)
                 : adapt_input(data, columns.at(d.name), input_spec(d), here);
    } catch (const Misfit& e) {
      if (!first_target) throw;
      rethrow_for_target(e, m, data, columns.at(d.name));
    }
    if (labels) out.labels = labels_by_row(*a.column);
    channels_last |= a.channels_last;
    has_labels |= labels;
    if (first_target) out.target = target_facts(data, columns.at(d.name), *a.column);
    if (!inputs.empty() && d.name == inputs[0]) first = a;
    out.feeds.names.push_back(d.name);
    out.feeds.columns.push_back(a.column);
  }
  if (std::string note = layout_note(o.adapt.layout, channels_last); !note.empty())
    out.notes.push_back(std::move(note));
  if (o.adapt.label_offset != 0 && !has_labels && !targets.empty())
    out.notes.push_back(cat("--label-offset ", o.adapt.label_offset,
                            " is about class labels, and the target '", out.target.column,
                            "' holds numbers: they are not changed"));
  FeedOptions used = o;
  used.adapt.layout = channels_last ? Layout::kNhwc : Layout::kNchw;
  note_spec(data, columns, inputs, out.feeds.label, used, out.metadata);
  if (has_labels) note_labels(summary, scores, o, out);
  if (const size_t n = raw_columns(m, {}, o.tokens).size(); n > 0 && inputs.size() > 1)
    first.note = cat("of ", n, n == 1 ? " column, " : " columns, ", describe_kinds(out.feeds, n),
                     o.tokens.empty() ? "" : ", beside tokens " + first.note);
  out.line = data_line(data, first, has_labels ? &summary : nullptr);
  return out;
}

std::map<int64_t, int64_t> numbers_of_labels(const Model& m) {
  std::map<int64_t, int64_t> numbers;
  for (const std::string& label : target_labels(m)) {
    if (!is_whole_number(label)) return {};
    numbers.emplace(std::stoll(label), int64_t(numbers.size()));
  }
  return numbers;
}

Tensor class_numbers(const std::string& input, const Tensor& labels,
                     const std::map<int64_t, int64_t>& numbers) {
  std::vector<int64_t> ids = labels.to_ints();
  for (size_t k = 0; k < ids.size(); ++k) {
    const auto at = numbers.find(ids[k]);
    if (at == numbers.end()) {
      std::vector<std::string> classes;
      for (const auto& [label, number] : numbers) classes.push_back(std::to_string(label));
      unknown_class(cat("element ", k, " of '", input, "'"), std::to_string(ids[k]), classes,
                    offset_hint(labels.to_ints(), classes));
    }
    ids[k] = at->second;
  }
  return Tensor::vector(ids).reshaped(labels.shape());
}

Value fitted(const Model& m, const ValueDef& input, const Value& given, bool as_trained) {
  const Tensor* t = std::get_if<Tensor>(&given);
  if (!t || t->dtype() == DType::kString) return given;  // text, sequences: as they are
  Dataset data = Dataset::from_tensors({{input.name, *t}});
  const bool target = is_target(m, input.name);
  if (target && dtype_is_integer(input.type.elem))
    data = with_classes(std::move(data), input.name, target_labels(m), 0);
  FeedOptions feed;
  if (as_trained) follow_arrays(data_spec(m.metadata), feed);
  AdaptOptions o = options_for(feed, input.name, target);
  o.missing = !target && takes_missing(m.main, m.main.find(input.name));
  const bool label = target && dtype_is_integer(input.type.elem);
  const InputSpec spec = input_spec(input);
  data.set(input.name, (label ? adapt_label_column(data, input.name, spec, o)
                              : adapt_input(data, input.name, spec, o))
                           .column);
  return data.gather_all(input.name);
}

}  // namespace onnxtrain::run
