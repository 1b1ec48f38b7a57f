// Steps that new models of every kind of data share.
#include "run/new/parts.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/text.hpp"
#include "data/adapt.hpp"
#include "data/images.hpp"
#include "model/trained_outputs.hpp"
#include "onnx/onnx.hpp"
#include "run/data/data_spec.hpp"
#include "run/data/parts.hpp"
#include "run/data/raw_columns.hpp"

namespace onnxtrain::run {

using nlohmann::json;
using Names = std::vector<std::string>;

namespace {

// Classes that look like one, classes that nothing can be learnt about.
void warn_of_classes(const NewTarget& t, const std::string& name, int64_t rows,
                     Observer& observer) {
  if (const std::string text = similar_classes(t.names); !text.empty())
    observer.on_warning("OT3125", text, "write both alike in the data, where they are one class");
  if (t.classes && rows >= 20 && 2 * t.outputs > rows)
    observer.on_warning("OT3126",
                        cat("target ", name, " has ", t.outputs, " classes for ", rows,
                            " rows: most are there once, and nothing can be learnt about them"),
                        t.numeric ? "to learn the number itself:  --task numbers"
                                  : "name another column:  --target NAME");
}

}  // namespace

OpenOptions open_options(const NewRequest& q) {
  OpenOptions o;
  o.csv.text_among = true;
  if (!q.target.empty()) o.csv.targets = {q.target};
  if (!q.drop.empty()) o.csv.drop = {q.drop};
  o.csv.encoding = q.encoding;
  o.csv.separator = csv_separator(q.separator);
  return o;
}

void tell(const Dataset& data, Observer& observer) {
  for (const std::string& note : data.notes()) observer.on_note("note", note);
  if (const std::string note = class_order(data, data.target_column()); !note.empty())
    observer.on_note("note", note);
}

void tell(const PreprocessPlan& plan, Observer& observer) {
  for (const std::string& line : plan.lines) observer.on_note("columns", line);
  if (!plan.left_out.empty())
    observer.on_note("left out", listed_plain(plan.left_out, 12) +
                                     "   (--one-hot or --embed NAME to use a text)");
}

NetworkSpec network_spec(const NewRequest& q, const NewTarget& t, Shape row) {
  NetworkSpec s;
  s.kind = q.kind;
  s.row = std::move(row);
  s.outputs = t.outputs;
  s.classes = t.classes;
  s.target_mean = t.mean;
  s.target_deviation = t.deviation;
  s.hidden = q.hidden;
  s.dropout = q.dropout;
  s.seed = q.seed;
  for (const auto& [name, one] : t.parts)
    s.heads.push_back({name, one.outputs, one.classes, one.mean, one.deviation});
  return s;
}

void note_target(const NewTarget& t, const Names& columns, Model& m) {
  std::vector<TrainedOutput> outputs;
  json names = json::object();
  for (const auto& [name, one] : t.parts) {  // losses of numbers near 1, whatever their unit
    const double by = one.classes || one.deviation.empty() ? 1 : one.deviation[0];
    outputs.push_back({name, one.classes ? "cross_entropy" : "mse", 1 / (by * by)});
    if (!one.names.empty()) names[name] = one.names;
  }
  if (!outputs.empty()) m.metadata[kOutputsKey] = trained_outputs_text(outputs);
  if (!names.empty()) m.metadata[kTargetClassesKey] = names.dump();
  if (outputs.empty()) m.metadata["onnxtrain.task"] = t.classes ? "classes" : "numbers";
  if (!t.parts.empty() && !t.parts[0].target.names.empty())  // of the output that is watched
    m.metadata["onnxtrain.classes"] = json(t.parts[0].target.names).dump();
  if (!t.deviation.empty()) {
    const double most = *std::max_element(t.deviation.begin(), t.deviation.end());
    if (most < 1e-2 || most > 1e6) m.metadata[kLossWeightKey] = cat(1 / (most * most));
  }
  if (!t.names.empty()) m.metadata["onnxtrain.classes"] = json(t.names).dump();
  if (!columns.empty()) m.metadata["onnxtrain.target"] = json(columns).dump();
}

void tell_target(const NewTarget& t, const std::string& name, int64_t rows, Observer& observer) {
  if (!t.parts.empty()) {
    Names few;
    for (const auto& [column, part] : t.parts) {
      warn_of_classes(part, column, rows, observer);
      if (part.few_wholes && !part.classes) few.push_back(column);
    }
    if (!few.empty())
      observer.on_note("note", cat(listed(few), few.size() == 1 ? " holds" : " hold",
                                   " few different whole numbers, learnt as numbers; as classes:  ",
                                   "--task classes"));
    return observer.on_note("target", cat(t.text, "; an output for each"));
  }
  warn_of_classes(t, name, rows, observer);
  constexpr int64_t kUneven = 5;
  if (t.classes && t.least > 0 && t.most > kUneven * t.least)
    observer.on_note("note", cat("classes are uneven (", with_commas(t.least), " to ",
                                 with_commas(t.most), " rows): train --class-weights balanced ",
                                 "counts them alike, --metric f1 chooses the best epoch by f1"));
  observer.on_note("target", cat(name, "  ", t.text, "   (--task ",
                                 t.classes ? "numbers" : "classes", " to change)"));
}

// One input per column, or one for all when they are many numbers.
Model in_front(const Model& net, const std::string& x, const PreprocessPlan& plan, uint64_t seed) {
  Model m;
  if (plan.matrix) {
    InputScale s;
    Names features;
    for (const ColumnTransform& t : plan.columns) {
      s.fill.push_back(float(t.fill));
      s.mean.push_back(float(t.offset));
      s.std.push_back(float(1 / t.scale));
      features.push_back(t.name);
    }
    s.shape = {int64_t(plan.columns.size())};
    m = with_scaled_input(net, x, s, all_ops());
    m.metadata["onnxtrain.features"] = json(features).dump();
  } else {
    m = with_preprocessing(net, x, plan.columns, seed, all_ops());
    note_columns(plan.reading, m.metadata);
  }
  m.metadata["onnxtrain.scale"] = kScaledInGraph;
  return m;
}

// An output gives way to a column of its name.
void give_way(const PreprocessPlan& plan, NetworkSpec& s) {
  for (const ColumnTransform& c : plan.columns)
    if (c.name == "logits" || c.name == "prediction") s.output = "output";
}

int64_t usual_epochs(const std::string& kind, int64_t rows, int64_t batch) {
  constexpr int64_t kUsual = 10;
  if (kind.empty()) return kUsual;
  // a step of a network for images or sequences takes longer
  const bool dense = kind == "mlp" || kind == "linear";
  const bool recurrent = kind == "lstm" || kind == "gru";
  const int64_t steps = dense ? 2500 : recurrent ? 1200 : 600;
  const int64_t most = dense ? 200 : recurrent ? 100 : 50;
  const int64_t batches = std::max<int64_t>(1, (rows + batch - 1) / std::max<int64_t>(1, batch));
  return std::clamp((steps + batches - 1) / batches, kUsual, most);
}

}  // namespace onnxtrain::run
