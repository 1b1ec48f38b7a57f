// Large initializers go from the file straight into memory of their own, past protobuf: they are
// neither read twice nor kept twice. What is left is a small message in which each of them stands
// as external data of a place that no file can name. Internal to onnx/.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/memory.hpp"

namespace onnxtrain {

struct LiftedTensor {
  std::shared_ptr<void> data;
  size_t bytes = 0;
};

// A serialised ModelProto, read by position.
struct MessageBytes {
  uint64_t size = 0;
  std::function<void(uint64_t offset, void* out, size_t bytes)> read;  // by any thread
  FileRange file;  // path is empty when it is no file
};

// The message without the data of large initializers (of the main graph and of training graphs),
// which are appended to `lifted`. Nothing: the message is malformed, or little would be gained; it
// is then to be parsed as it is.
std::optional<std::string> lift_tensors(const MessageBytes& message,
                                        std::vector<LiftedTensor>& lifted);

// The place of external data that stands for lifted[k], and back; -1: another place.
std::string lifted_location(size_t k);
int64_t lifted_index(const std::string& location);

}  // namespace onnxtrain
