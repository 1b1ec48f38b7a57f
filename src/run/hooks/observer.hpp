// Who is told what a run does. run/ itself prints nothing.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace onnxtrain::run {

// What an epoch, or the part of it that was run, measured.
struct EpochResult {
  int64_t epoch = 0, steps = 0;
  uint64_t step = 0;  // steps of the whole training so far
  double gradient_norm = -1;
  double train_loss = 0, valid_loss = 0, lr = 0, samples_per_second = 0, seconds = 0,
         wait_seconds = 0;
  bool has_valid = false, best = false;
  std::string best_because;  // "higher accuracy", "same accuracy, lower loss"
  std::vector<std::pair<std::string, double>> metrics;
  bool watches_loss = false;  // on the validation rows; else the first metric decides
};

class Observer {
 public:
  virtual ~Observer() = default;
  // What was found or decided: a short label ("data", "loss") and a line of text.
  virtual void on_note(const std::string& /*label*/, const std::string& /*text*/) {}
  virtual void on_warning(const std::string& /*code*/, const std::string& /*text*/,
                          const std::string& /*hint*/) {}
  // Before the first step: how many epochs this call is about.
  virtual void on_plan(int64_t /*epochs*/) {}
  // batches: of the epoch; 0 when only its end will tell
  virtual void on_step(int64_t /*epoch*/, int64_t /*batch*/, int64_t /*batches*/, double /*loss*/,
                       double /*samples_per_second*/) {}
  virtual void on_epoch(const EpochResult&) {}
};

}  // namespace onnxtrain::run
