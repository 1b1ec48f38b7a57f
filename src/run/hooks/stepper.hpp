// Who makes the steps of a run. The loop sees only this; the native implementation is the engine's
// Training, another engine would be one more.
#pragma once
#include "engine/training.hpp"

namespace onnxtrain::run {

// What validation needs of a batch, from another runtime. What is undefined, the training has not.
struct Evaluated {
  Tensor loss, scores;
  std::string refused;  // not empty: it was not computed, and why
};

class Stepper {
 public:
  virtual ~Stepper() = default;
  // Before the first step: where the training stands.
  virtual void begin(uint64_t seed, uint64_t step, bool check_finite) = 0;
  // One step of every training section; the loss. NotFiniteError: nothing was written.
  virtual double step(const Feeds& feeds) = 0;
  virtual uint64_t step_count() const = 0;
  virtual double gradient_norm() const = 0;        // of the last step; -1 when not known
  virtual double lr() const = 0;                   // 0 when the file has no single learning rate
  virtual bool parallel() const { return false; }  // several processes make a step together
  // The training with the state as it is now: what is evaluated, saved and exported.
  virtual Training& training() = 0;
  // The training that makes the steps itself, alone and with whole batches; null: another does.
  virtual Training* native() { return nullptr; }
  virtual bool evaluates() const { return false; }  // the next may be called
  // The inference form on these rows, where the steps are made.
  virtual Evaluated evaluate(const Feeds&) { return {{}, {}, "this library makes the steps"}; }
};

class NativeStepper final : public Stepper {
 public:
  explicit NativeStepper(Training& t) : t_(t) {}
  void begin(uint64_t seed, uint64_t step, bool check_finite) override {
    t_.set_seed(seed);
    t_.set_step_count(step);
    t_.set_check_finite(check_finite);
  }
  double step(const Feeds& feeds) override { return t_.step(feeds, -1, false).loss; }
  uint64_t step_count() const override { return t_.step_count(); }
  double gradient_norm() const override { return t_.gradient_norm(); }
  double lr() const override { return t_.has_lr() ? t_.lr() : 0; }
  bool parallel() const override { return t_.communicator() != nullptr; }
  Training& training() override { return t_; }
  Training* native() override { return parallel() || t_.blocks() > 1 ? nullptr : &t_; }

 private:
  Training& t_;
};

}  // namespace onnxtrain::run
