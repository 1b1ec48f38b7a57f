// Every output against its own target.
#include "run/metrics/other_outputs.hpp"

#include <nlohmann/json.hpp>

#include "model/trained_outputs.hpp"
#include "run/data/data_spec.hpp"
#include "run/metrics/evaluate.hpp"

namespace onnxtrain::run {

namespace {

// By the training's own word; files that do not have it: made by `new`, targets in the order of the
// outputs.
std::vector<OutputLoss> losses_of(const Model& m) {
  std::vector<OutputLoss> all = output_losses(m.metadata);
  if (!all.empty() || m.training.empty()) return all;
  for (const TrainedOutput& o : trained_outputs(m.metadata)) all.push_back({o.name, o.loss, ""});
  const Graph& step = m.training[0].algorithm;
  size_t k = 0;
  for (ValueId v : step.inputs)
    if (const std::string& name = step.value_name(v); is_target(m, name) && k++ < all.size())
      all[k - 1].target = name;
  return k == all.size() ? all : std::vector<OutputLoss>();
}

TaskKind task_of(const std::string& loss) {
  if (loss == "cross_entropy" || loss == "nll") return TaskKind::kClasses;
  return loss.starts_with("bce") ? TaskKind::kBinary : TaskKind::kRegression;
}

}  // namespace

std::vector<JudgedOutput> judged_outputs(const Model& m) {
  const DataSpec known = data_spec(m.metadata);
  std::vector<JudgedOutput> all;
  for (const OutputLoss& l : losses_of(m)) {
    const Scores s = describe_output(m, l.output, l.loss, l.target);
    if (s.value == kNone) continue;
    const auto names = known.target_classes.find(l.output);
    all.push_back({{l.output, Metrics(task_of(l.loss), s),
                    names != known.target_classes.end() ? names->second
                    : all.empty()                       ? known.classes
                                                        : std::vector<std::string>()},
                   s.value,
                   l.target});
  }
  return all;
}

std::vector<OutputMetrics> output_metrics(Training& t, const FeedColumns& data, int64_t batch) {
  std::vector<OutputMetrics> found;
  if (!judged_outputs(t.source()).empty())
    Evaluator(t).evaluate(data, batch, nullptr, nullptr, &found);
  return found;
}

std::vector<std::pair<std::string, double>> epoch_metrics(const Metrics& first,
                                                          const std::vector<OutputMetrics>& outputs,
                                                          const std::string& watched) {
  std::vector<std::pair<std::string, double>> all, by_output;
  for (const OutputMetrics& o : outputs) {
    for (const auto& [name, value] : o.metrics.values())
      by_output.emplace_back(o.output + "_" + name, value);
    for (const auto& [name, value] : o.metrics.more())
      if (watched == o.output + "_" + name) all.emplace_back(watched, value);
  }
  for (const auto& metric : by_output)
    if (metric.first == watched) all.push_back(metric);
  const bool named = !all.empty();
  for (const auto& metric : first.watched_first(named ? "" : watched)) all.push_back(metric);
  for (const auto& metric : by_output)
    if (!named || metric.first != watched) all.push_back(metric);
  return all;
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
