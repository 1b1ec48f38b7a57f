// The learning rate and its schedule as nodes over T (ruling G13).
#pragma once
#include "convert/step/optimizers.hpp"

namespace onnxtrain {

// The learning rate of this step: a scalar initializer "learning_rate".
ValueId add_lr(StepBuilder& s, const Recipe& r, DType type);
// With a schedule, binds the learning rate of the next step.
void add_lr_update(StepBuilder& s, const Recipe& r, const Counter& counter, ValueId lr);
// The learning rate of step k (0 for the first) in double precision: what the nodes compute.
double scheduled_lr(const Recipe& r, int64_t step);

// Does the length of the run decide this schedule, and has nobody said it?
bool spans_the_run(const ScheduleSpec& s);
// Gives the training that `prepare` made the schedule of `r`, in place of the one it has, and the
// learning rate that belongs to the `done`-th update: for a run whose length is known only now.
void set_schedule(Model& m, const Recipe& r, int64_t done, const OpTable& ops);

}  // namespace onnxtrain
