// The training loop: epochs over a dataset, validation, metrics, early stopping, checkpoints.
// Prints nothing; an observer is told what happens.
#pragma once
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/adapt.hpp"
#include "data/open.hpp"
#include "engine/training.hpp"
#include "run/checkpoint.hpp"
#include "run/metrics.hpp"

namespace onnxtrain {

// Columns that are ready to be fed, by input name, in the order of `names`.
struct FeedColumns {
  std::vector<std::string> names;
  std::vector<ColumnPtr> columns;
  std::string label;  // the name among them that is the target; may be empty
  int64_t rows() const { return columns.empty() ? 0 : columns[0]->rows(); }
  FeedColumns subset(const std::vector<int64_t>& rows) const;
};

struct FitOptions {
  int64_t epochs = 10;
  int64_t batch = 0;      // 0: what the file fixes, or 32
  int64_t max_steps = 0;  // 0: no limit
  double max_seconds = 0;
  int64_t patience = 0;  // epochs without improvement before stopping; 0: off
  bool shuffle = true;
  std::string folder;      // run folder; empty: nothing is written
  bool goes_on = false;    // the run in the folder is continued; else it is set aside
  int64_t save_every = 0;  // steps between checkpoints; 0: at the end of each epoch
  int64_t keep = 0;        // that many checkpoints of finished epochs stay besides last and best
  bool sample_operators = true;  // watch a few steps for the report; no other observer may be set
  bool check_finite = true;      // stop when a loss, gradient or weight is not finite
  // Goes into the metadata of checkpoints and exported models (classes, scaling, columns).
  std::map<std::string, std::string> metadata;
  const std::atomic<int>* stop = nullptr;  // set by a signal: finish the step, save, return
};

struct EpochResult {
  int64_t epoch = 0, steps = 0;
  uint64_t step = 0;  // steps of the whole training so far
  double gradient_norm = -1;
  double train_loss = 0, valid_loss = 0, rate = 0, samples_per_second = 0, seconds = 0,
         wait_seconds = 0;
  bool has_valid = false, best = false;
  std::vector<std::pair<std::string, double>> metrics;
};

struct FitResult {
  std::vector<EpochResult> epochs;
  bool interrupted = false;
  int64_t best_epoch = 0;
  Position at;                // where it stopped
  double constant_guess = 0;  // percent
  std::vector<std::vector<int64_t>> confusion;
};

struct FitObserver {
  virtual ~FitObserver() = default;
  virtual void on_step(int64_t /*epoch*/, int64_t /*batch*/, int64_t /*batches*/, double /*loss*/,
                       double /*samples_per_second*/) {}
  virtual void on_epoch(const EpochResult&) {}
  virtual void on_warning(const std::string& /*code*/, const std::string& /*text*/) {}
};

// Inference on the current state, with the loss when the file lets it be computed on the main
// graph.
class Evaluator {
 public:
  explicit Evaluator(Training& t);
  // Loss and metrics over all rows.
  Metrics evaluate(const FeedColumns& data, int64_t batch);
  bool has_loss() const { return loss_ >= 0; }
  TaskKind task(const FeedColumns& data) const;

 private:
  std::unique_ptr<Program> program_;
  std::vector<ValueDef> inputs_;
  std::vector<std::string> outputs_;
  int loss_ = -1, scores_ = -1;
  Scores describe_;
  Training& training_;
};

// Trains from `at` (all zero: from the beginning) and leaves the final state in `t`.
FitResult fit(Training& t, const FeedColumns& train, const FeedColumns* valid, const FitOptions& o,
              Position at, FitObserver& observer);

}  // namespace onnxtrain
