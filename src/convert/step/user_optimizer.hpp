// An optimizer given as an ONNX graph, applied to every parameter.
#pragma once
#include "convert/step/optimizers.hpp"

namespace onnxtrain {

// The graph's inputs are found by name: R (learning rate), T (step, 1 at the first), X (weights), G
// (gradient); every further input is a state variable of the parameter's shape, zero at first. Its
// outputs are the new weights, then the new state in the order of the state inputs.
void add_user_optimizer(StepBuilder& s, const OptimizerSpec& o,
                        const std::vector<Trained>& parameters, ValueId lr, const Counter& counter);

}  // namespace onnxtrain
