// Training: obeys a model's training steps. initialize, step() = all algorithms in list order,
// step(i) = one of them; state lives here between steps.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/session.hpp"

namespace onnxtrain {

struct StepResult {
  double loss = 0;                  // of the last algorithm that has one; NaN if none has
  std::vector<NamedValue> outputs;  // of every algorithm run, in order
};

// The loss among the first `own_outputs` outputs of a combined graph: the one named "loss", else
// the first floating-point scalar; -1 if there is none.
int find_loss(const Graph& g, size_t own_outputs);

class Training {
 public:
  Training(std::shared_ptr<const Model> model, uint64_t seed, ProgramOptions options = {});
  ~Training();

  // Runs every initialization in list order and assigns (a file without one: nothing changes).
  void initialize();
  // which < 0: all algorithms in list order, assigning after each. outputs: false leaves everything
  // but the loss out of the result.
  StepResult step(const Feeds& feeds, int which = -1, bool outputs = true);

  int algorithms() const;
  // Inputs algorithm i needs, in order (ruling G6: main inputs it does not use are not among them).
  std::vector<std::string> input_names(int i) const;
  // The declared type of an input of algorithm i.
  const ValueDef& input(int i, const std::string& name) const;

  State& state() { return *state_; }
  const State& state() const { return *state_; }
  uint64_t step_count() const { return step_count_; }
  void set_step_count(uint64_t n) { step_count_ = n; }
  uint64_t seed() const { return seed_; }
  void set_seed(uint64_t s) { seed_ = s; }
  // The learning rate: the scalar initializer that feeds the optimizers' R. Error if there is none.
  double rate() const;
  void set_rate(double r);
  bool has_rate() const { return !rate_name_.empty(); }
  const std::string& rate_name() const { return rate_name_; }

  const Model& source() const { return *model_; }
  // The model with the current state as its initializers.
  Model snapshot() const;
  Plan& plan_for(const Feeds& feeds, int which);
  // Watches every algorithm's steps from now on; null: nobody.
  void set_observer(StepObserver* observer);
  ThreadPool& pool() { return *pool_; }
  // For programs that run on the same state (evaluation).
  const std::shared_ptr<State>& shared_state() const { return state_; }
  const std::shared_ptr<ThreadPool>& shared_pool() const { return pool_; }

 private:
  struct Algorithm;
  std::shared_ptr<const Model> model_;
  std::shared_ptr<State> state_;
  std::shared_ptr<ThreadPool> pool_;
  std::vector<std::unique_ptr<Algorithm>> algorithms_;
  ProgramOptions options_;
  std::string rate_name_;
  uint64_t seed_ = 0, step_count_ = 0;
};

}  // namespace onnxtrain
