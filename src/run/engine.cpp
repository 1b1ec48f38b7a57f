// Steps by another runtime: state goes there before the first one and comes back when it is asked
// for.
#include "run/engine.hpp"

#include <algorithm>
#include <cmath>

#include "run/data/feeds.hpp"

namespace onnxtrain::run {

Evaluated evaluated(const Engine::Named& values) {
  Evaluated e;
  for (const auto& [name, value] : values) (name == "loss" ? e.loss : e.scores) = value;
  return e;
}

void EngineStepper::begin(uint64_t seed, uint64_t step, bool check_finite) {
  t_.set_seed(seed);
  t_.set_step_count(step);
  check_finite_ = check_finite;
}

void EngineStepper::hand_over() {
  Model now = as_fed(t_.snapshot());
  now.metadata["onnxtrain.seed"] = std::to_string(t_.seed());  // as in a checkpoint
  engine_.begin(now, t_.step_count());
  handed_ = t_.state().assignments();
  taken_step_ = t_.step_count();
}

// Somebody assigned to the state since, or the engine has none yet.
void EngineStepper::hand_over_if_changed() {
  if (handed_ && *handed_ == t_.state().assignments()) return;
  take_back();
  hand_over();
}

Evaluated EngineStepper::evaluate(const Feeds& feeds) {
  hand_over_if_changed();
  return engine_.evaluate(feeds);
}

double EngineStepper::step(const Feeds& feeds) {
  hand_over_if_changed();
  const double loss = engine_.step(feeds);
  ahead_ = true;
  if (check_finite_ && !std::isfinite(loss)) {
    const bool back = engine_.undo();
    throw NotFiniteError(cat("loss became ", std::isnan(loss) ? "NaN" : "infinite"),
                         back ? "the loss that the engine returned"
                              : "the loss that the engine returned; it cannot take the step back",
                         t_.step_count() + 1, last_loss_, -1);
  }
  last_loss_ = loss;
  t_.set_step_count(t_.step_count() + 1);
  return loss;
}

namespace {

bool finite(const Tensor& t) {
  if (!dtype_is_float(t.dtype())) return true;
  if (t.dtype() == DType::kFloat)
    return std::all_of(t.as<float>(), t.as<float>() + t.size(),
                       [](float v) { return std::isfinite(v); });
  const std::vector<double> all = t.to_doubles();
  return std::all_of(all.begin(), all.end(), [](double v) { return std::isfinite(v); });
}

}  // namespace

void EngineStepper::check(const Engine::Named& values) const {
  for (const auto& [name, value] : values) {
    const Tensor old = t_.state().get(name);
    if (old.dtype() != value.dtype() || old.shape() != value.shape())
      throw Error(ErrorKind::kFailed, "OT1276",
                  cat("the engine returned '", name, "' as ", dtype_name(value.dtype()),
                      to_string(value.shape()), ", it is ", dtype_name(old.dtype()),
                      to_string(old.shape())));
    if (check_finite_ && !finite(value) && finite(old))
      throw Error(ErrorKind::kFailed, "OT1276",
                  cat("the engine returned '", name,
                      "' with NaN or infinite values; when it was last read it was finite"),
                  "a lower learning rate, or another engine:  --engine native");
  }
}

// All of it is looked at before any of it is taken; what cannot be taken leaves the training at the
// state that was read last.
void EngineStepper::take_back() const {
  if (!ahead_) return;
  ahead_ = false;
  try {
    const Engine::Named values = engine_.state();
    check(values);
    for (const auto& [name, value] : values) t_.state().set(name, value);
  } catch (...) {
    t_.set_step_count(taken_step_);
    handed_.reset();
    throw;
  }
  handed_ = t_.state().assignments();
  taken_step_ = t_.step_count();
}

double EngineStepper::lr() const {
  take_back();
  return t_.has_lr() ? t_.lr() : 0;
}

Training& EngineStepper::training() {
  take_back();
  return t_;
}

}  // namespace onnxtrain::run
