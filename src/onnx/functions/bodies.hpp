// Bodies of standard functions that differ from the ones libonnx has. Internal to onnx/.
#pragma once
#include <string>

#include "onnx/onnx_pb.h"

namespace onnxtrain {

// Null: the standard's own body is right.
const onnx::FunctionProto* corrected_body(const std::string& domain, const std::string& op);

}  // namespace onnxtrain
