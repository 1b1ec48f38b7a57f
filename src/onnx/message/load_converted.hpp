// Models that were changed in the file's words.
#pragma once
#include <optional>

#include "onnx/onnx.hpp"
#include "onnx/onnx_pb.h"
#include "op/model_refusal.hpp"

namespace onnxtrain {

// The changed model; nothing when it does not load, because an operator does not take the new form
// or the new type.
inline std::optional<Model> load_converted(const onnx::ModelProto& p, const OpTable& ops) {
  std::optional<Model> m;
  model_refusal([&] { m = load_model_bytes(p.SerializeAsString(), "", ops); });
  return m;
}

}  // namespace onnxtrain
