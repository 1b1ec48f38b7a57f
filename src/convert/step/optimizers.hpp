// Optimizers: one node per parameter, state variables beside it.
#pragma once
#include "convert/step/step_builder.hpp"

namespace onnxtrain {

struct Counter {
  ValueId value = kNone;  // T: as stored, before this step
  ValueId next = kNone;   // T + 1
  std::string name;
};

// What the update of one parameter needs.
struct Trained {
  std::string name;
  ValueId weights = kNone, gradient = kNone;  // in the algorithm
  bool bias_or_norm = false;                  // excluded from decay on request
};

// First value of the counter T for this optimizer.
int64_t first_step(const OptimizerSpec& o);
double default_lr(const OptimizerSpec& o);
// Whether the update of a weight reads the learning rate at every step.
bool reads_lr(const OptimizerNode& n);
// The functions of our own domain, operator to ONNX text, as JSON.
const std::string& function_texts();

// All settings of the optimizer, those that the recipe does not give at their defaults.
// weight_decay: that of one weight, where it differs.
OptimizerSettings settings_of(const OptimizerSpec& o, std::optional<double> weight_decay = {});

// Adds the updates and binds parameters and state.
void add_optimizer(StepBuilder& s, const OptimizerSpec& o, const std::vector<Trained>& parameters,
                   ValueId lr, const Counter& counter);

}  // namespace onnxtrain
