// A model that computes in float64, for comparisons that float32 is too coarse for.
#pragma once
#include <optional>

#include "model/model.hpp"
#include "op/op.hpp"

namespace onnxtrain {

// The inference part of the model with the same names, where every float, float16 and bfloat16 is a
// double; what an operator wants in one type only (scales of a Resize) stays as it is. Nothing: an
// operator of the model has no form in double.
std::optional<Model> in_double(const Model& m, const OpTable& ops);

}  // namespace onnxtrain
