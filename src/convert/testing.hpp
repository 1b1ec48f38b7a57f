// Helpers of the tests of convert/.
#pragma once
#include "onnx/onnx.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

// "float[2,3] name = {...}" with random numbers, for models in ONNX's text syntax.
inline std::string weights(const std::string& name, const Shape& shape, uint64_t seed,
                           double low = -0.5, double high = 0.5) {
  std::string dims, numbers;
  for (int64_t d : shape) dims += cat(dims.empty() ? "" : ",", d);
  for (double v : random_tensor(shape, low, high, seed).to_doubles())
    numbers += cat(numbers.empty() ? "" : ", ", v);
  return cat("float[", dims, "] ", name, " = {", numbers, "}");
}

}  // namespace onnxtrain::testing
