// Files of old opsets, for what needs operators of newer ones.
#pragma once
#include <optional>

#include "model/model.hpp"
#include "op/op.hpp"

namespace onnxtrain {

// The inference part of the model at opset `target` of ai.onnx, with the same names, by libonnx's
// converter; nothing when the model is there already, or holds an operator that the converter
// cannot bring forward.
std::optional<Model> raise_opset(const Model& m, int target, const OpTable& ops);

// The same for a graph that becomes part of another model: also when its opset is the newer one,
// as long as its operators mean the same at `target`.
std::optional<Model> at_opset(const Model& m, int target, const OpTable& ops);

}  // namespace onnxtrain
