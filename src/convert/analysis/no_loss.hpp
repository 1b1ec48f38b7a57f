// No loss fits the model, or none can be chosen: what `auto` says. Its own type, because looking at
// gradients alone goes on without a loss.
#pragma once
#include "core/error.hpp"

namespace onnxtrain {

class NoLossFits : public Error {
 public:
  NoLossFits(std::string message, std::string hint)
      : Error(ErrorKind::kModel, "OT1238", std::move(message), std::move(hint)) {}
};

[[noreturn]] inline void no_loss_fits(std::string message, std::string hint = {}) {
  throw NoLossFits(std::move(message), std::move(hint));
}

}  // namespace onnxtrain
