// Rows through a model.
#include "run/predict.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "convert/prepare.hpp"
#include "convert/preprocess/image_input.hpp"
#include "core/shell.hpp"
#include "data/columns/fingerprint.hpp"
#include "data/images.hpp"
#include "data/prefetch.hpp"
#include "distributed/gather_tensors.hpp"
#include "model/batch.hpp"
#include "model/class_labels.hpp"
#include "model/scores.hpp"
#include "onnx/onnx.hpp"
#include "run/data/raw_columns.hpp"
#include "run/data/target_check.hpp"
#include "run/data/usual_values.hpp"
#include "run/data/whole_batches.hpp"
#include "run/folder/checkpoint.hpp"
#include "run/metrics/evaluate.hpp"
#include "run/output_rows.hpp"
#include "run/same_everywhere.hpp"
#include "run/start.hpp"

namespace onnxtrain::run {

namespace {

namespace fs = std::filesystem;

struct Fed {
  std::vector<ColumnPtr> columns;  // in the order of the model's inputs
  std::vector<std::string> row_names;
  bool any_size = false;  // row_names are images that the model itself resizes
};

// Data is read as the run read its own, unless a flag says otherwise: then that is said.
void compare_with_run(const DataRequest& q, const DataSpec& known, Observer& observer) {
  const std::string& scale = q.feed.adapt.scale;
  if (known.of_run && scale != "auto" && scale != known.scale && !known.scaled_in_graph())
    observer.on_note("note", cat("--scale ", scale, " instead of the run's own (",
                                 known.scale.empty() ? "none" : known.scale,
                                 "): the model was not trained on such numbers"));
}

// A table to predict may lack the target, but what the run predicts is known.
void check_target_name(const DataRequest& q, const DataSpec& known) {
  if (q.target.empty() || known.targets.empty()) return;
  std::string all;
  for (const std::string& t : known.targets) all += cat(all.empty() ? "" : ",", t);
  if (q.target != all &&
      std::find(known.targets.begin(), known.targets.end(), q.target) == known.targets.end())
    usage_error("OT2105", cat("--target ", q.target, ": the run predicts '", all, "'"),
                "remove --target: the run knows what it predicts");
}

// Targets need not be there.
Fed inputs_from(const DataRequest& q, const Model& m, FeedOptions& feed, Observer& observer) {
  check_target_name(q, data_spec(m.metadata));
  compare_with_run(q, data_spec(m.metadata), observer);
  OpenOptions open;
  open.part = DataPart::kTest;
  open.csv.no_target = true;
  if (!q.target.empty()) open.csv.targets = {q.target};
  if (!q.drop.empty()) open.csv.drop = {q.drop};
  open.csv.encoding = q.encoding;
  open.csv.separator = csv_separator(q.separator);
  follow(data_spec(m.metadata), feed, open.csv);
  const std::vector<std::string> names = m.input_names();
  for (const auto& name : names) {  // images take the size of the input
    const Shape dims = input_spec(m.main.value(m.main.find(name))).dims;
    if (open.x_shape.empty() && !dims.empty() &&
        std::all_of(dims.begin() + 1, dims.end(), [](int64_t n) { return n > 0; }))
      open.x_shape.assign(dims.begin() + 1, dims.end());
  }
  if (open.x_shape.size() == 1) open.csv.width = open.x_shape[0];
  open.images.wanted = takes_images(m, open);
  follow_image_rule(m, open);
  open.images.skip_bad = q.skip_bad;
  open.images.folder = q.images;
  require_rows_first(m.main);
  const std::optional<TextRule> text = text_rule_for(m, q.text);
  if (text) feed.tokens = text->inputs();
  read_raw_columns(m, feed, open.csv);
  if (text) read_text_columns(*text, open.csv);
  Dataset data = open_dataset(q.data, open);
  if (text) data = with_tokens(std::move(data), *text);
  std::map<std::string, std::string> map = feed.map;
  for (const auto& [input, column] : feed.usual)
    if (data.has(column) && std::find(names.begin(), names.end(), input) != names.end())
      map.try_emplace(input, column);
  const auto columns = match_columns(data, names, {}, map, true);
  std::vector<std::string> wanted;
  for (const auto& [name, column] : columns) wanted.push_back(column);
  data = data.used(wanted);
  for (const std::string& note : data.notes()) observer.on_note("note", note);
  if (const std::string note = matched_by_order(columns, names, map); !note.empty())
    observer.on_note("note", note);
  Fed fed;
  fed.row_names = data.row_names();
  fed.any_size =
      data.format() == "images" && names.size() == 1 && image_rule(m.metadata).has_value();
  for (const auto& name : names) {
    const ValueId v = m.main.find(name);
    AdaptOptions options = options_for(feed, name, false);
    options.missing = takes_missing(m.main, v);
    fed.columns.push_back(
        adapt_input(data, columns.at(name), input_spec(m.main.value(v)), options).column);
  }
  warn_unlike({names, fed.columns, ""}, m.metadata, data_spec(m.metadata).features, observer);
  return fed;
}

// All outputs for all rows, in batches; of processes, each runs every n-th of them.
std::vector<PredictedOutput> rows_through(Session& session, const std::vector<ColumnPtr>& fed,
                                          int64_t batch, Communicator* processes,
                                          Observer& observer) {
  const Model& m = session.model();
  const std::vector<std::string> names = m.input_names();
  const int64_t fixed = fixed_batch(m.main), rows = fed.empty() ? 0 : fed[0]->rows();
  batch = std::clamp<int64_t>(rows, 1, fixed > 0 ? fixed : batch);
  const int64_t ranks = processes ? processes->size() : 1, rank = processes ? processes->rank() : 0;
  std::vector<int64_t> order;
  for (int64_t i = 0; i < rows; ++i)
    if (i / batch % ranks == rank) order.push_back(i);
  Prefetcher prefetch(fed, batch, 1);
  prefetch.start(std::move(order));
  OutputRows all(m.main);
  while (const Batch* b = prefetch.next()) {
    Feeds feeds;
    for (size_t k = 0; k < names.size(); ++k)
      feeds[names[k]] = b->rows < fixed ? filled_up(b->tensors[k], fixed) : b->tensors[k];
    all.add(session.run(feeds), std::max(b->rows, fixed), b->rows);
  }
  if (processes) all.gather(*processes);
  return all.finish(observer);
}

void check_rows(Communicator& c, const Model& m, const std::vector<ColumnPtr>& columns,
                int64_t batch) {
  check_same(&c, {{"model", hash_of(m)},
                  {"data", hash_of(hash_rows(columns).text())},
                  {"batch size", uint64_t(batch)}});
}

// Images as they are, for a model that resizes them itself: those of one size that follow each
// other make a batch; of processes, each runs every n-th of them.
std::vector<PredictedOutput> images_through(Session& session, const std::vector<std::string>& files,
                                            int64_t batch, Communicator* processes,
                                            Observer& observer) {
  const int64_t ranks = processes ? processes->size() : 1, rank = processes ? processes->rank() : 0;
  int64_t turn = 0;
  const Model& m = session.model();
  const std::string input = m.input_names()[0];
  const TypeInfo& type = m.main.value(m.main.find(input)).type;
  OutputRows all(m.main);
  std::vector<Tensor> rows;
  auto flush = [&] {
    if (rows.empty()) return;
    if (turn++ % ranks != rank) return rows.clear();
    const auto n = int64_t(rows.size());
    Shape shape = rows[0].shape();
    shape[0] = n;
    Tensor x(DType::kUint8, shape);
    for (size_t k = 0; k < rows.size(); ++k)
      std::copy_n(rows[k].as<uint8_t>(), rows[k].size(),
                  x.as<uint8_t>() + int64_t(k) * rows[k].size());
    if (type.elem == DType::kFloat) {
      Tensor real(DType::kFloat, shape);
      std::copy_n(x.as<uint8_t>(), x.size(), real.as<float>());
      x = real;
    }
    all.add(session.run({{input, Value(x)}}), n, n);
    rows.clear();
  };
  for (const std::string& file : files) {
    Tensor one = image_tensor(file, (*type.shape)[1].value);
    if (!rows.empty() && (rows[0].shape() != one.shape() || int64_t(rows.size()) == batch)) flush();
    rows.push_back(std::move(one));
  }
  flush();
  if (processes) all.gather(*processes);
  return all.finish(observer);
}

// Images that were resized while they were read, for an input of bytes.
Tensor as_declared(const Tensor& t, const TypeInfo& type) {
  if (t.dtype() != DType::kFloat || type.elem != DType::kUint8) return t;
  Tensor bytes(DType::kUint8, t.shape());
  std::transform(t.as<float>(), t.as<float>() + t.size(), bytes.as<uint8_t>(),
                 [](float v) { return uint8_t(std::clamp(std::lround(v), 0L, 255L)); });
  return bytes;
}

// The first rows of the sample that a model takes; empty when an input is not among them.
Feeds some_rows(const Model& m, const FeedColumns& sample) {
  const int64_t fixed = fixed_batch(m.main);
  std::vector<int64_t> rows(size_t(std::min<int64_t>(fixed > 0 ? fixed : 32, sample.rows())));
  std::iota(rows.begin(), rows.end(), int64_t(0));
  Prefetcher prefetch(sample.columns, int64_t(rows.size()), 0);
  prefetch.start(rows);
  const Batch* b = prefetch.next();
  Feeds feeds;
  for (const std::string& name : m.input_names())
    for (size_t k = 0; k < sample.names.size(); ++k)
      if (sample.names[k] == name)
        feeds[name] = as_declared(b->tensors[k], m.main.value(m.main.find(name)).type);
  return feeds.size() == m.input_names().size() ? feeds : Feeds();
}

// "1", "2", ...: labels of data that does not count from 0 (--label-offset), as the data has them.
std::vector<std::string> labels_by_offset(const Model& m, int64_t offset) {
  std::vector<std::string> names;
  if (offset == 0 || m.main.outputs.empty()) return names;
  int64_t classes = describe_scores(m).classes;
  if (classes < 2) {  // an exported model has no training that says so
    const auto trained = m.metadata.find("onnxtrain.output");
    ValueId v = trained == m.metadata.end() ? kNone : m.main.find(trained->second);
    if (v == kNone) v = m.main.outputs[0];
    const TypeInfo& t = m.main.value(v).type;
    if (t.shape && t.shape->size() > 1 && t.shape->back().known()) classes = t.shape->back().value;
  }
  for (int64_t k = 0; classes > 1 && k < classes; ++k) names.push_back(std::to_string(k - offset));
  return names;
}

std::vector<std::string> class_names(const Model& m, const std::vector<std::string>& of_data,
                                     int64_t label_offset) {
  std::vector<std::string> names = of_data.empty() ? class_labels(m.main) : of_data;
  return names.empty() ? labels_by_offset(m, label_offset) : names;
}

}  // namespace

OutputMeaning meaning_of_output(const Model& m, const std::string& output, const Shape& rows,
                                size_t names) {
  const ValueId v = m.main.find(output);
  if (v == kNone)
    usage_error("OT1121", cat("the model has no output '", output, "'"),
                "the names are in  onnxtrain info MODEL");
  const DataSpec spec = data_spec(m.metadata);
  const auto trained = m.metadata.find("onnxtrain.output");
  const bool main =
      trained == m.metadata.end() ? v == m.main.outputs[0] : trained->second == output;
  std::vector<std::string> classes;
  if (const auto own = spec.target_classes.find(output); own != spec.target_classes.end())
    classes = own->second;
  else if (main)
    classes = class_names(m, spec.classes, spec.label_offset);
  if (names > 0) classes.resize(names);
  return meaning(m, output, rows, dtype_is_float(m.main.value(v).type.elem), main,
                 std::move(classes));
}

Predictions predict(const std::string& run_or_model, const DataRequest& q, int64_t batch,
                    const ProgramOptions& program, Observer& observer, Communicator* processes) {
  const bool folder = fs::is_directory(run_or_model);
  Position position;
  const std::string file = folder ? Folder(run_or_model).model() : run_or_model;
  if (folder && fs::exists(Folder(run_or_model).last()) && !fs::exists(file))
    throw Error(ErrorKind::kCheckpoint, "OT4202", cat("the run has no '", file, "'"),
                cat("write it again from the checkpoint:  onnxtrain export ",
                    shell_word(run_or_model), " -o ", shell_word(file)));
  auto model = std::make_shared<const Model>(load_model_or_checkpoint(file, position));
  FeedOptions feed = q.feed;
  const Fed fed = inputs_from(q, *model, feed, observer);
  if (processes) check_rows(*processes, *model, fed.columns, batch);
  Session session(model, program);
  Predictions p;
  p.outputs = fed.any_size ? images_through(session, fed.row_names, batch, processes, observer)
                           : rows_through(session, fed.columns, batch, processes, observer);
  p.row_names = fed.row_names;
  describe_outputs(*model, class_names(*model, feed.classes, feed.adapt.label_offset), p);
  return p;
}

namespace {

// The loss that the model was trained with, or the one that fits it.
Recipe recipe_of(const Model& m) {
  Recipe r;
  LossTerm term;
  const std::string kind = loss_kind(m);
  const auto output = m.metadata.find("onnxtrain.output");
  if (!kind.empty() && kind != "output" && output != m.metadata.end() &&
      m.main.find(output->second) != kNone) {
    term.kind = kind;
    term.output = output->second;
  }
  r.losses = {term};
  return r;
}

}  // namespace

Evaluation evaluate(const std::string& run_or_model, const std::string& which, const DataRequest& q,
                    DataPart part, int64_t batch, const ProgramOptions& program, Observer& observer,
                    Communicator* processes) {
  Position position;
  Model m = load_model_or_checkpoint(checkpoint_of(run_or_model, which, observer), position);
  const DataSpec known = data_spec(m.metadata);
  if (m.training.empty()) m = prepare(m, recipe_of(m), all_ops());
  Training t(std::make_shared<const Model>(std::move(m)), 0, program);
  accept_fed(t);
  compare_with_run(q, known, observer);
  const LoadedData data = load_data(q.data, q, t.source(), t.slots(), part, known);
  observer.on_note("data", data.line);
  for (const std::string& note : data.notes) observer.on_note("note", note);
  warn_unlike(data.feeds, t.source().metadata, known.features, observer);
  note_training_data(data.feeds, t.source().metadata, observer);
  check_target(t.source(), data, observer);
  if (processes) check_rows(*processes, t.source(), data.feeds.columns, batch);
  std::vector<std::string> classes =
      known.classes.empty() ? class_labels(t.source().main) : known.classes;
  if (classes.empty() && !data.labels.empty() && !data.target.classes.empty()) {
    classes = data.target.classes;
    observer.on_note("note", cat("the model does not say its classes: they are numbered by name, ",
                                 listed(classes, 10)));
  }
  const int64_t offset =
      q.feed.adapt.label_offset != 0 ? q.feed.adapt.label_offset : known.label_offset;
  if (classes.empty()) classes = labels_by_offset(t.source(), offset);
  return {Evaluator(t).evaluate(data.feeds, batch, nullptr, processes), data.feeds.rows(),
          std::move(classes), output_metrics(t, data.feeds, batch)};
}

std::optional<double> export_difference(const Folder& folder, const FeedColumns& sample,
                                        const ProgramOptions& program) {
  if (!fs::exists(folder.best())) return {};
  auto exported = std::make_shared<const Model>(load_model(folder.model(), all_ops()));
  const Feeds feeds = some_rows(*exported, sample);
  if (feeds.empty()) return {};  // an input that the step does not feed
  auto got = Session(exported, program).run(feeds);
  exported = nullptr;  // one of the two in memory at a time
  Position ignored;
  auto trained = std::make_shared<const Model>(load_checkpoint(folder.best(), ignored));
  auto want = Session(std::move(trained), program).run(feeds);
  double worst = 0;
  for (size_t k = 0; k < got.size(); ++k) {
    const Tensor* x = std::get_if<Tensor>(&want[k].second);
    const Tensor* y = std::get_if<Tensor>(&got[k].second);
    if (!x || !y || x->dtype() == DType::kString) continue;
    const std::vector<double> a = x->to_doubles(), c = y->to_doubles();
    for (size_t i = 0; i < std::min(a.size(), c.size()); ++i)
      worst = std::max(worst, std::fabs(a[i] - c[i]));
  }
  return worst;
}

}  // namespace onnxtrain::run
