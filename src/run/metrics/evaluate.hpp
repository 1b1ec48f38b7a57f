// Loss and metrics on the inference form of the model, with the weights of a running training.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/prefetch.hpp"
#include "distributed/communicator.hpp"
#include "engine/training.hpp"
#include "run/data/feeds.hpp"
#include "run/hooks/stepper.hpp"
#include "run/metrics/metrics.hpp"
#include "run/metrics/other_outputs.hpp"
#include "run/metrics/predictions.hpp"

namespace onnxtrain::run {

// Inference on the current state, with the loss when the file lets it be computed on the main
// graph.
class Evaluator {
 public:
  explicit Evaluator(Training& t);
  // Where the steps are made, as long as that does not refuse.
  explicit Evaluator(Stepper& s);
  // Loss and metrics over all rows. sample: sees every batch too. processes: share the batches out;
  // all of them get the same metrics, to the bit those of one. outputs: of a model with several
  // targets, the metrics of each; empty where another runtime evaluates.
  Metrics evaluate(const FeedColumns& data, int64_t batch, PredictionSample* sample = nullptr,
                   Communicator* processes = nullptr,
                   std::vector<OutputMetrics>* outputs = nullptr);
  PredictionSample sample_of(const FeedColumns& data) const {
    return {task(data), describe_, data.rows()};
  }
  // The output that the loss is about, for one batch; undefined when the training has none.
  Tensor scores(const Feeds& feeds);
  // Why the steps' runtime does not evaluate; empty: it does, or there is no other runtime.
  const std::string& refused() const { return refused_; }

 private:
  struct Result {
    double loss = 0;
    Tensor scores;
    std::vector<Tensor> others;  // of others_
  };
  Result run(const std::vector<Value>& in, int64_t rows);
  bool run_elsewhere(const std::vector<Value>& in, int64_t rows, Result& r);
  // One batch and what came of it.
  struct Judged {
    std::vector<Value> in;
    Tensor label, scores;
    std::vector<Tensor> others, targets;  // of others_; undefined where the data has no target
    double loss = 0;
    int64_t first = 0, rows = 0;
  };
  TaskKind task(const FeedColumns& data) const;
  void feed(const FeedColumns& data, const Batch& b, int64_t fixed, bool copy, Judged& j) const;
  void run(Judged& j);
  static void share(Communicator& c, std::vector<Judged>& group);
  void count(const Judged& j, int64_t fixed, Metrics& metrics, PredictionSample* sample) const;
  static void count(const Judged& j, std::vector<OutputMetrics>& outputs);
  std::unique_ptr<Program> program_;
  std::vector<ValueDef> inputs_;
  int loss_ = -1, scores_ = -1;
  std::vector<JudgedOutput> others_;  // of a model with several targets: every output
  int first_other_ = 0;
  Scores describe_;
  Training& training_;
  Stepper* elsewhere_ = nullptr;  // null: this library computes
  std::string refused_;
};

}  // namespace onnxtrain::run
