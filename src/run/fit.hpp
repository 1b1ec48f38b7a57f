// The training loop: epochs over batches, validation, metrics, early stopping, checkpoints.
#pragma once
#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "run/data/batches.hpp"
#include "run/folder/checkpoint.hpp"
#include "run/folder/folder.hpp"
#include "run/hooks/observer.hpp"
#include "run/hooks/stepper.hpp"

namespace onnxtrain::run {

struct FitOptions {
  int64_t epochs = 10;    // of the whole training, those before included
  int64_t batch = 0;      // 0: what the file fixes, or 32
  int64_t max_steps = 0;  // of the whole training; 0: no limit
  double max_seconds = 0;
  int64_t patience = 0;  // epochs without improvement before stopping; 0: off
  // That decides which epoch is best (metrics.hpp); empty: the first, or the loss, also of several
  // targets.
  std::string metric;
  bool shuffle = true;
  int64_t save_every = 0;  // steps between checkpoints; 0: at the end of each epoch
  int64_t keep = 0;        // that many checkpoints of finished epochs stay besides last and best
  bool sample_operators = true;  // watch a few steps for the report; no other observer may be set
  bool lr_known = false;         // its course was looked at before the run
  bool check_finite = true;      // stop when a loss, gradient or weight is not finite
  const std::atomic<int>* stop = nullptr;  // set by a signal: finish the step, save, return
};

// What is trained on, and where it is written down.
struct FitTask {
  Batches& train;
  const FeedColumns* valid = nullptr;  // null: none
  const Folder* folder = nullptr;      // null: nothing is written
  // Goes into the metadata of checkpoints and exported models (classes, scaling, columns).
  std::map<std::string, std::string> metadata;
};

struct FitResult {
  std::vector<EpochResult> epochs;
  bool interrupted = false;
  int64_t best_epoch = 0;
  Position at;  // where it stopped
  // What a guess reaches that is the same for every row: (metric, value), in the order of the
  // metrics.
  std::vector<std::pair<std::string, double>> constant_guess;
  double constant_loss = 0;  // of a guess by the classes' shares; 0: not known
  std::vector<std::vector<int64_t>> confusion;
};

// What to say (OT3118) when the best epoch is no better than a guess that is the same for every
// row; "" when it is. hint: what to try; scaled: the columns have one scale.
struct Guess {
  std::string text, hint;
};
Guess only_guessed(const FitResult& r, bool scaled);

// Trains from `at` (all zero: from the beginning) and leaves the final state in the stepper.
FitResult fit(Stepper& stepper, const FitTask& task, const FitOptions& o, Position at,
              Observer& observer);

}  // namespace onnxtrain::run
