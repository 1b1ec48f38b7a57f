// Schedules.
#include "convert/schedules.hpp"

namespace onnxtrain {

double scheduled_rate(const Recipe& r, int64_t) { return default_rate(r.optimizer); }

ValueId add_rate(StepBuilder& s, const Recipe& r, const Counter&, int64_t, DType type) {
  return s.add_state("learning_rate", scalar_tensor(scheduled_rate(r, 0), type));
}

void add_rate_update(StepBuilder&, const Recipe& r, const Counter&, int64_t, ValueId) {
  if (r.schedule.kind != "constant") usage_error("OT1299", "schedules are not written yet");
}

}  // namespace onnxtrain
