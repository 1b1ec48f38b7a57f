// What a model is, for people and programs: inputs, outputs, initializers, training sections.
#pragma once
#include <string>

#include "model/model.hpp"

namespace onnxtrain {

// JSON object: inputs, outputs, initializers (name, type, elements, state), opsets, ir_version,
// producer, metadata, training (inputs, outputs, bindings, operators).
std::string describe_json(const Model& m);

}  // namespace onnxtrain
