// Models that were changed in the file's words.
#pragma once
#include <optional>

#include "onnx/onnx.hpp"
#include "onnx/onnx_pb.h"

namespace onnxtrain {

// The changed model; nothing when it does not load, because an operator does not take the new form
// or the new type.
inline std::optional<Model> load_converted(const onnx::ModelProto& p, const OpTable& ops) {
  try {
    return load_model_bytes(p.SerializeAsString(), "", ops);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace onnxtrain
