// Rows through a model.
#include "run/predict.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "convert/prepare.hpp"
#include "data/prefetch.hpp"
#include "model/batch.hpp"
#include "onnx/onnx.hpp"
#include "run/checkpoint.hpp"
#include "run/evaluate.hpp"
#include "run/start.hpp"
#include "run/whole_batches.hpp"

namespace onnxtrain::run {

namespace {

namespace fs = std::filesystem;

Tensor joined(const std::vector<Tensor>& parts) {
  if (parts.empty() || parts[0].rank() == 0)
    data_error("OT2153", "the model's first output has no rows: there is nothing to write per row",
               "onnxtrain run MODEL --inputs in.npz -o out.npz");
  Shape shape = parts[0].shape();
  shape[0] = 0;
  for (const Tensor& t : parts) shape[0] += t.shape()[0];
  Tensor all(parts[0].dtype(), shape);
  char* at = static_cast<char*>(all.data());
  for (const Tensor& t : parts) {
    if (Shape(t.shape().begin() + 1, t.shape().end()) != Shape(shape.begin() + 1, shape.end()))
      data_error("OT2153", "the rows of the model's first output have different shapes");
    if (t.bytes()) std::memcpy(at, t.data(), t.bytes());
    at += t.bytes();
  }
  return all;
}

// The columns that feed the model's inputs, in their order. Targets need not be there.
std::vector<ColumnPtr> inputs_from(const DataRequest& q, const Model& m, FeedOptions& feed) {
  OpenOptions open;
  open.part = DataPart::kTest;
  open.csv.no_target = q.target.empty();
  open.csv.target = q.target;
  options_from_metadata(m, feed, open.csv);
  const std::vector<std::string> names = m.input_names();
  for (const auto& name : names) {  // images take the size of the input
    const Shape dims = input_spec(m.main.value(m.main.find(name))).dims;
    if (open.x_shape.empty() && !dims.empty() &&
        std::all_of(dims.begin() + 1, dims.end(), [](int64_t n) { return n > 0; }))
      open.x_shape.assign(dims.begin() + 1, dims.end());
  }
  require_rows_first(m.main);
  Dataset data = open_dataset(q.data, open);
  const auto columns = match_columns(data, names, {}, feed.map, true);
  std::vector<std::string> wanted;
  for (const auto& [name, column] : columns) wanted.push_back(column);
  data = data.used(wanted);
  std::vector<ColumnPtr> fed;
  for (const auto& name : names) {
    const InputSpec spec = input_spec(m.main.value(m.main.find(name)));
    fed.push_back(adapt_input(data, columns.at(name), spec, feed.adapt).column);
  }
  return fed;
}

// The first output for all rows, in batches.
Tensor rows_through(Session& session, const std::vector<ColumnPtr>& fed, int64_t batch) {
  const Model& m = session.model();
  const std::vector<std::string> names = m.input_names();
  const int64_t fixed = fixed_batch(m.main), rows = fed.empty() ? 0 : fed[0]->rows();
  Prefetcher prefetch(fed, std::clamp<int64_t>(rows, 1, fixed > 0 ? fixed : batch), 1);
  std::vector<int64_t> order(static_cast<size_t>(rows));
  std::iota(order.begin(), order.end(), int64_t(0));
  prefetch.start(order);
  std::vector<Tensor> parts;
  while (const Batch* b = prefetch.next()) {
    Feeds feeds;
    for (size_t k = 0; k < names.size(); ++k)
      feeds[names[k]] = b->rows < fixed ? filled_up(b->tensors[k], fixed) : b->tensors[k];
    parts.push_back(first_rows(std::get<Tensor>(session.run(feeds)[0].second), b->rows));
  }
  return joined(parts);
}

bool is_class_loss(const Model& m) {
  auto loss = m.metadata.find("onnxtrain.loss");
  return loss != m.metadata.end() && (loss->second == "cross_entropy" || loss->second == "nll");
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
      if (sample.names[k] == name) feeds[name] = b->tensors[k];
  return feeds.size() == m.input_names().size() ? feeds : Feeds();
}

}  // namespace

Predictions predict(const std::string& run_or_model, const DataRequest& q, int64_t batch,
                    const ProgramOptions& program) {
  const bool folder = fs::is_directory(run_or_model);
  Position position;
  auto model = std::make_shared<const Model>(
      load_model_or_checkpoint(folder ? Folder(run_or_model).model() : run_or_model, position));
  FeedOptions feed = q.feed;
  const std::vector<ColumnPtr> fed = inputs_from(q, *model, feed);
  Session session(model, program);
  Predictions p;
  p.rows = rows_through(session, fed, batch);
  p.output = model->main.value_name(model->main.outputs[0]);
  p.classes = feed.classes;
  const bool row_of_scores = p.rows.rank() == 2 && p.rows.shape()[0] > 0 && p.rows.shape()[1] > 1;
  p.has_classes = row_of_scores && (!p.classes.empty() || is_class_loss(*model));
  return p;
}

Evaluation evaluate(const std::string& run_or_model, const std::string& which, const DataRequest& q,
                    DataPart part, int64_t batch, const ProgramOptions& program,
                    Observer& observer) {
  Position position;
  Model m = load_model_or_checkpoint(checkpoint_of(run_or_model, which, observer), position);
  if (m.training.empty()) m = prepare(m, Recipe{}, all_ops());
  Training t(std::make_shared<const Model>(std::move(m)), 0, program);
  const LoadedData data = load_data(q.data, q, t.source(), t.slots(), part, true);
  observer.on_note("data", data.line);
  return {Evaluator(t).evaluate(data.feeds, batch), data.feeds.rows()};
}

std::optional<double> export_difference(const Folder& folder, const FeedColumns& sample) {
  if (!fs::exists(folder.best())) return {};
  auto exported = std::make_shared<const Model>(load_model(folder.model(), all_ops()));
  const Feeds feeds = some_rows(*exported, sample);
  if (feeds.empty()) return {};  // an input that the step does not feed
  auto got = Session(exported).run(feeds);
  exported = nullptr;  // one of the two in memory at a time
  Position ignored;
  auto trained = std::make_shared<const Model>(load_checkpoint(folder.best(), ignored));
  auto want = Session(std::move(trained)).run(feeds);
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
