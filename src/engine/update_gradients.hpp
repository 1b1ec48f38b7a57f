// What the updates of a plan read as gradients.
#pragma once
#include "engine/program.hpp"

namespace onnxtrain {

// For a plan that ran up to its first write: gradients are still where its slots say. Values whose
// shape only the run told are passed over.
void show_gradients(const Plan& plan, const GradientReader& read);

}  // namespace onnxtrain
