// Every output against its own target.
#include "run/other_outputs.hpp"

#include <algorithm>
#include <numeric>

#include "data/prefetch.hpp"
#include "model/trained_outputs.hpp"
#include "run/data_spec.hpp"

namespace onnxtrain::run {

std::vector<OutputMetrics> other_outputs(const Training& t, const LoadedData& data, int64_t batch) {
  const Model& m = t.source();
  const std::vector<TrainedOutput> outputs = trained_outputs(m.metadata);
  std::vector<size_t> targets;  // among the columns, in the order of the outputs
  for (size_t k = 0; k < data.feeds.names.size(); ++k)
    if (is_target(m, data.feeds.names[k])) targets.push_back(k);
  if (outputs.size() < 2 || targets.size() != outputs.size()) return {};
  const auto names = data_spec(data.metadata).target_classes;
  std::vector<OutputMetrics> all;
  for (size_t k = 1; k < outputs.size(); ++k) {
    const bool classes = outputs[k].loss == "cross_entropy";
    Scores s;
    s.output = outputs[k].name;
    s.value = m.main.find(s.output);
    if (s.value == kNone) return {};
    const TypeInfo& type = m.main.value(s.value).type;
    if (classes && type.shape && type.shape->size() == 2) s.classes = (*type.shape)[1].value;
    const auto known = names.find(s.output);
    all.push_back({s.output, Metrics(classes ? TaskKind::kClasses : TaskKind::kRegression, s),
                   known == names.end() ? std::vector<std::string>() : known->second});
  }
  Session session(std::make_shared<const Model>(t.snapshot()));
  const int64_t rows = data.feeds.rows();
  Prefetcher prefetch(data.feeds.columns, std::clamp<int64_t>(rows, 1, batch), 1);
  std::vector<int64_t> order(static_cast<size_t>(rows));
  std::iota(order.begin(), order.end(), int64_t(0));
  prefetch.start(std::move(order));
  while (const Batch* b = prefetch.next()) {
    Feeds feeds;
    for (size_t k = 0; k < data.feeds.names.size(); ++k)
      if (!is_target(m, data.feeds.names[k])) feeds[data.feeds.names[k]] = b->tensors[k];
    for (const auto& [name, value] : session.run(feeds))
      for (size_t k = 0; k < all.size(); ++k)
        if (const Tensor* out = std::get_if<Tensor>(&value); out && all[k].output == name)
          all[k].metrics.add(*out, b->tensors[targets[k + 1]], 0, b->rows);
  }
  return all;
}

}  // namespace onnxtrain::run
