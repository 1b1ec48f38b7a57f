// The one element of a tensor, read in place: a step allocates nothing.
#pragma once
#include "core/dtype.hpp"

namespace onnxtrain {

inline double number_at(DType type, const void* data) {
  double number = 0;
  dispatch<float, double, Half, BFloat16, int64_t, int32_t, uint8_t, bool>(
      type, "a single number",
      [&]<class T>() { number = double(compute_t<T>(*static_cast<const T*>(data))); });
  return number;
}

}  // namespace onnxtrain
