// Calls into libonnx that may fail. It throws std::runtime_error (its own errors derive from it)
// and, for contents that it does not expect, std::logic_error. Nothing else is caught here: our own
// Error passes through.
#pragma once
#include <stdexcept>
#include <string>

namespace onnxtrain {

// Runs f; what libonnx said, or "" when it did not complain.
template <class F>
std::string libonnx_complaint(F&& f) {
  try {
    f();
  } catch (const std::runtime_error& e) {
    return *e.what() ? e.what() : "libonnx refuses it";
  } catch (const std::logic_error& e) {
    return *e.what() ? e.what() : "libonnx refuses it";
  }
  return {};
}

// Runs f; false when libonnx throws.
template <class F>
bool libonnx_accepts(F&& f) {
  return libonnx_complaint(f).empty();
}

}  // namespace onnxtrain
