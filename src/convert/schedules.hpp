// The learning rate and its schedule as nodes over T (ruling G13).
#pragma once
#include "convert/optimizers.hpp"

namespace onnxtrain {

// The rate of this step: a scalar initializer "learning_rate".
ValueId add_rate(StepBuilder& s, const Recipe& r, const Counter& counter, int64_t t0, DType type);
// With a schedule, binds the learning rate of the next step.
void add_rate_update(StepBuilder& s, const Recipe& r, const Counter& counter, int64_t t0,
                     ValueId rate);
// The learning rate of step k (0 for the first) in double precision: what the nodes compute.
double scheduled_rate(const Recipe& r, int64_t step);

}  // namespace onnxtrain
