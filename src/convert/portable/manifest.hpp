// What a program needs to know to drive a step: docs/step-manifest.schema.json.
#pragma once
#include "convert/portable/portable.hpp"

namespace onnxtrain::portable {

// JSON text. names: file name of each section's model, in order; state_file: of the initial values.
std::string manifest(const std::vector<StepModel>& steps, const std::vector<std::string>& names,
                     const Model& m, const StepOptions& o, const std::string& state_file);

// Initial values of the state, in the types of the steps' inputs.
std::vector<std::pair<std::string, Tensor>> initial_state(const std::vector<StepModel>& steps,
                                                          const Model& m);

// The bytes of a safetensors file.
std::string safetensors(const std::vector<std::pair<std::string, Tensor>>& tensors);

}  // namespace onnxtrain::portable
