// Loss and metrics on the inference form of the model, with the weights of a running training.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/training.hpp"
#include "run/feeds.hpp"
#include "run/metrics.hpp"
#include "run/predictions.hpp"

namespace onnxtrain::run {

// Inference on the current state, with the loss when the file lets it be computed on the main
// graph.
class Evaluator {
 public:
  explicit Evaluator(Training& t);
  // Loss and metrics over all rows. sample: sees every batch too.
  Metrics evaluate(const FeedColumns& data, int64_t batch, PredictionSample* sample = nullptr);
  PredictionSample sample_of(const FeedColumns& data) const {
    return {task(data), describe_, data.rows()};
  }
  // The output that the loss is about, for one batch; undefined when the training has none.
  Tensor scores(const Feeds& feeds);

 private:
  TaskKind task(const FeedColumns& data) const;
  std::unique_ptr<Program> program_;
  std::vector<ValueDef> inputs_;
  int loss_ = -1, scores_ = -1;
  Scores describe_;
  Training& training_;
};

}  // namespace onnxtrain::run
