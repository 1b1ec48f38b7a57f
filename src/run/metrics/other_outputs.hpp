// Scores of a model that learns several targets: of every output that has a loss of its own.
#pragma once
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/training.hpp"
#include "run/data/feeds.hpp"
#include "run/metrics/metrics.hpp"

namespace onnxtrain::run {

struct OutputMetrics {
  std::string output;
  Metrics metrics;                   // without a loss
  std::vector<std::string> classes;  // names of class 0, 1, ...; may be empty
};

// Loss and metrics on some rows.
struct Evaluation {
  Metrics metrics;  // of the first output that has a loss
  int64_t rows = 0;
  std::vector<std::string> classes;    // names of class 0, 1, ...; may be empty
  std::vector<OutputMetrics> outputs;  // of a model that learns several targets: all of them
  std::string unlike = {};             // how the rows differ from those of the training
};

// An output with a loss of its own, and what it is judged by.
struct JudgedOutput {
  OutputMetrics to;  // nothing is counted yet
  ValueId value;     // of the main graph
  std::string target;
};
// In the order of the losses; empty for a model with one target.
std::vector<JudgedOutput> judged_outputs(const Model& m);

// The metrics of each of them by this library, whatever runtime makes the steps. data: with its
// targets; an output whose target is not there is left out.
std::vector<OutputMetrics> output_metrics(Training& t, const FeedColumns& data, int64_t batch);

// What an epoch says: the metrics of the first output, the watched one before all
// (Metrics::watched_first), then those of every output by its name: (OUTPUT_METRIC, value). watched
// may be one of these.
std::vector<std::pair<std::string, double>> epoch_metrics(const Metrics& first,
                                                          const std::vector<OutputMetrics>& outputs,
                                                          const std::string& watched);

// As `eval --json` and the C API say it: loss, every metric, per_class, confusion, and the same by
// output in "outputs".
nlohmann::ordered_json evaluation_json(const Evaluation& e);

}  // namespace onnxtrain::run
