// A file that is no ONNX model: what it is, and how to get a model from it. Internal to onnx/.
#pragma once
#include <string>

#include "onnx/message/lift.hpp"

namespace onnxtrain {

// OT1002 when the bytes are another known kind of file. what: "'m.pt'"; path: "" when it came from
// memory.
// OT4002 when it is a folder.
void refuse_folder(const std::string& path);
void refuse_foreign(const MessageBytes& message, const std::string& what, const std::string& path);

}  // namespace onnxtrain
