// What the first steps show: gradients that are 0, updates that are lost, a learning rate that
// ends.
#pragma once
#include <string>
#include <vector>

#include "model/scores.hpp"
#include "run/hooks/observer.hpp"
#include "run/hooks/stepper.hpp"

namespace onnxtrain::run {

// Samples of the weights, compared after some steps: were they moved at all?
class HeldUpdates {
 public:
  explicit HeldUpdates(const Training& t);
  // Warns (OT3131) when most weights that have a gradient are bit by bit what they were.
  void warn_if_lost(Training& t, const Feeds& feeds, uint64_t steps, Observer& observer) const;

 private:
  struct Sample {
    std::string name;
    int64_t stride = 1;
    std::vector<char> bytes;  // every stride-th element
  };
  bool updated(const Training& t) const;
  std::vector<char> still(const Training& t, const Sample& s) const;  // by element of the sample
  std::vector<Sample> samples_;
  std::vector<std::pair<std::string, int64_t>> counters_;  // of updates
};

// Watches a training from its first step on; each thing is said once.
class FirstSteps {
 public:
  // lr_known: somebody looked at the course of the learning rate before.
  FirstSteps(Stepper& s, Scores target, bool lr_known, Observer& observer);
  // loss: of the step; last: of the epoch
  void after_step(const Feeds& feeds, double loss, bool last);
  void after_epoch(const EpochResult& e, int64_t epochs);

 private:
  void warn_of_zero_gradients(double loss);
  std::string heavier_loss() const;
  Stepper& s_;
  Scores target_;
  Observer& observer_;
  std::vector<HeldUpdates> weights_;  // one until they were looked at, or none
  uint64_t steps_ = 0;
  double first_lr_ = 0, top_lr_ = 0, last_lr_ = 0;
  bool lr_said_ = false, valid_said_ = false;
};

}  // namespace onnxtrain::run
