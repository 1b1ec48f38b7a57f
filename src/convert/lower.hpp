// Lowered training steps (ruling G15): no Gradient node, explicit backward in standard operators
// and local functions.
#pragma once
#include "convert/prepare.hpp"

namespace onnxtrain {

Model lower(const Model& m, const OpTable& ops);

}  // namespace onnxtrain
