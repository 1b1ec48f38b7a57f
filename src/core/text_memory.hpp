// What text takes beside the elements of its tensor.
#pragma once
#include <string>

#include "core/tensor.hpp"

namespace onnxtrain {

// Bytes on the heap of a string with room for so many characters, the allocator's own included.
inline size_t heap_bytes(size_t capacity) {
  constexpr size_t kInside = 15, kHeader = 8, kUnit = 16;  // shorter text is inside the element
  return capacity <= kInside ? 0 : (capacity + 1 + kHeader + kUnit - 1) / kUnit * kUnit;
}

// Of all elements; 0 for tensors that hold no text.
size_t text_bytes(const Tensor& t);

}  // namespace onnxtrain
