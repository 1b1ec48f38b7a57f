// Scores of a model that learns several targets: of every output that has a loss of its own.
#pragma once
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "engine/training.hpp"
#include "run/feeds.hpp"
#include "run/metrics.hpp"

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

// In the order of the losses; empty for a model with one target. data: with its targets.
std::vector<OutputMetrics> output_metrics(const Training& t, const FeedColumns& data,
                                          int64_t batch);

// As `eval --json` and the C API say it: loss, every metric, per_class, confusion, and the same by
// output in "outputs".
nlohmann::ordered_json evaluation_json(const Evaluation& e);

}  // namespace onnxtrain::run
