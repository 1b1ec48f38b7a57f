// Scores of a model that learns several targets: those of the outputs beside the first.
#pragma once
#include <string>
#include <vector>

#include "engine/training.hpp"
#include "run/feeds.hpp"
#include "run/metrics.hpp"

namespace onnxtrain::run {

struct OutputMetrics {
  std::string output;
  Metrics metrics;                   // without a loss
  std::vector<std::string> classes;  // names of class 0, 1, ...; may be empty
};

// Empty for a model with one target. data: with its targets.
std::vector<OutputMetrics> other_outputs(const Training& t, const LoadedData& data, int64_t batch);

}  // namespace onnxtrain::run
