// Another runtime that makes the steps of a run (docs/engines.md). The loop, the run folder and the
// checkpoints stay what they are; only the step is made elsewhere.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "run/hooks/stepper.hpp"

namespace onnxtrain::run {

class Engine {
 public:
  using Named = std::vector<std::pair<std::string, Tensor>>;
  virtual ~Engine() = default;
  // The training as it stands; before the first step, and when somebody else changed the state.
  virtual void begin(const Model& training, uint64_t step) = 0;
  // One step of every training section; the loss.
  virtual double step(const Feeds& feeds) = 0;
  // State variables as they are now.
  virtual Named state() = 0;
  // Takes the last step back; false when that cannot be done.
  virtual bool undo() = 0;
  // Loss and scores of these rows with the state as it is now (portable::make_evaluation).
  virtual Evaluated evaluate(const Feeds&) { return {{}, {}, "the engine only makes steps"}; }
};

// From the values that an engine calls "loss" and "scores".
Evaluated evaluated(const Engine::Named& values);

class EngineStepper final : public Stepper {
 public:
  EngineStepper(Training& t, Engine& e) : t_(t), engine_(e) {}
  void begin(uint64_t seed, uint64_t step, bool check_finite) override;
  double step(const Feeds& feeds) override;
  uint64_t step_count() const override { return t_.step_count(); }
  double gradient_norm() const override { return -1; }
  double lr() const override;
  Training& training() override;
  bool evaluates() const override { return true; }
  Evaluated evaluate(const Feeds& feeds) override;

 private:
  void hand_over_if_changed();
  void hand_over();
  void take_back() const;
  void check(const Engine::Named& values) const;
  Training& t_;
  Engine& engine_;
  bool check_finite_ = true;
  double last_loss_ = std::numeric_limits<double>::quiet_NaN();
  mutable bool ahead_ = false;              // the engine has made steps that t_ does not know
  mutable std::optional<uint64_t> handed_;  // assignments of the state that the engine has
  mutable uint64_t taken_step_ = 0;         // steps of the state that was read last
};

}  // namespace onnxtrain::run
