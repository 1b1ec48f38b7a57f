// Elements from one place to another. Internal to runtime/.
#pragma once
#include <algorithm>
#include <cstring>
#include <string>

#include "core/tensor.hpp"

namespace onnxtrain {

// Strings own memory and are copied one by one.
inline void copy_elements(DType type, void* to, const void* from, int64_t count, size_t bytes) {
  if (type == DType::kString)
    std::copy_n(static_cast<const std::string*>(from), count, static_cast<std::string*>(to));
  else if (bytes > 0)
    std::memcpy(to, from, bytes);
}

}  // namespace onnxtrain
