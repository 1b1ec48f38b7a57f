// Every output against its own target.
#include "run/metrics/other_outputs.hpp"

#include <algorithm>
#include <numeric>

#include <nlohmann/json.hpp>

#include "data/prefetch.hpp"
#include "model/batch.hpp"
#include "model/trained_outputs.hpp"
#include "run/data/data_spec.hpp"
#include "run/data/whole_batches.hpp"

namespace onnxtrain::run {

namespace {

// By the training's own word; files that do not have it: made by `new`, targets in the order of the
// outputs.
std::vector<OutputLoss> losses_of(const Model& m, const FeedColumns& data) {
  std::vector<OutputLoss> all = output_losses(m.metadata);
  if (!all.empty()) return all;
  for (const TrainedOutput& o : trained_outputs(m.metadata)) all.push_back({o.name, o.loss, ""});
  size_t k = 0;
  for (const std::string& name : data.names)
    if (is_target(m, name) && k++ < all.size()) all[k - 1].target = name;
  return k == all.size() ? all : std::vector<OutputLoss>();
}

TaskKind task_of(const std::string& loss) {
  if (loss == "cross_entropy" || loss == "nll") return TaskKind::kClasses;
  return loss.starts_with("bce") ? TaskKind::kBinary : TaskKind::kRegression;
}

struct Judged {
  OutputMetrics to;
  size_t target;  // among the columns
};

std::vector<Judged> judged(const Model& m, const FeedColumns& data) {
  const DataSpec known = data_spec(m.metadata);
  std::vector<Judged> all;
  for (const OutputLoss& l : losses_of(m, data)) {
    const Scores s = describe_output(m, l.output, l.loss, l.target);
    const auto target = std::find(data.names.begin(), data.names.end(), l.target);
    if (s.value == kNone || target == data.names.end()) continue;
    const auto names = known.target_classes.find(l.output);
    all.push_back({{l.output, Metrics(task_of(l.loss), s),
                    names != known.target_classes.end() ? names->second
                    : all.empty()                       ? known.classes
                                                        : std::vector<std::string>()},
                   size_t(target - data.names.begin())});
  }
  return all;
}

}  // namespace

std::vector<OutputMetrics> output_metrics(const Training& t, const FeedColumns& data,
                                          int64_t batch) {
  const Model& m = t.source();
  std::vector<Judged> all = judged(m, data);
  if (all.empty()) return {};
  Session session(std::make_shared<const Model>(t.snapshot()));
  const int64_t rows = data.rows(), fixed = fixed_batch(m.main);
  if (fixed > 0) batch = fixed;
  Prefetcher prefetch(data.columns, std::clamp<int64_t>(rows, 1, batch), 1);
  std::vector<int64_t> order(static_cast<size_t>(rows));
  std::iota(order.begin(), order.end(), int64_t(0));
  prefetch.start(std::move(order));
  while (const Batch* b = prefetch.next()) {
    Feeds feeds;
    for (size_t k = 0; k < data.names.size(); ++k)
      if (!is_target(m, data.names[k]))
        feeds[data.names[k]] = b->rows < fixed ? filled_up(b->tensors[k], fixed) : b->tensors[k];
    for (const auto& [name, value] : session.run(feeds))
      for (Judged& j : all)
        if (const Tensor* out = std::get_if<Tensor>(&value); out && j.to.output == name)
          j.to.metrics.add(first_rows(*out, b->rows), b->tensors[j.target], 0, b->rows);
  }
  std::vector<OutputMetrics> found;
  for (Judged& j : all) found.push_back(std::move(j.to));
  return found;
}

namespace {

void add_json(const Metrics& metrics, const std::vector<std::string>& classes,
              nlohmann::ordered_json& j) {
  for (const auto& [name, value] : metrics.values()) j[name] = value;
  for (const auto& [name, value] : metrics.more()) j[name] = value;
  for (const Metrics::ClassScore& c : metrics.per_class())
    j["per_class"].push_back(
        {{"precision", c.precision}, {"recall", c.recall}, {"f1", c.f1}, {"rows", c.rows}});
  if (!classes.empty() && j.contains("per_class")) j["classes"] = classes;
  if (!metrics.confusion().empty()) j["confusion"] = metrics.confusion();
}

}  // namespace

nlohmann::ordered_json evaluation_json(const Evaluation& e) {
  nlohmann::ordered_json j{{"rows", e.rows}, {"loss", e.metrics.loss()}};
  add_json(e.metrics, e.classes, j);
  for (const OutputMetrics& o : e.outputs) {
    nlohmann::ordered_json& here = j["outputs"][o.output] = nlohmann::ordered_json::object();
    add_json(o.metrics, o.classes, here);
  }
  return j;
}

}  // namespace onnxtrain::run
