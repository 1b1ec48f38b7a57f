// A trial that a model may not allow, with the refusal as a value.
#pragma once
#include <optional>

#include "core/error.hpp"

namespace onnxtrain {

// What was wrong with the model, or nothing. For trials with sizes that may not fit; other errors,
// and our own mistakes, go on.
template <class F>
std::optional<Error> model_refusal(F&& trial) {
  try {
    trial();
  } catch (Error& e) {
    if (e.kind() != ErrorKind::kModel) throw;
    return std::move(e);
  }
  return std::nullopt;
}

}  // namespace onnxtrain
