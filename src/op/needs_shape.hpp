// A gradient rule or a lowering that cannot go on without a shape or a type that is not known yet.
// Where it is possible the gradient waits for the run, when shapes are numbers
// (autodiff/deferred_gradient.hpp); otherwise it is the user's error like any other.
#pragma once
#include "core/error.hpp"

namespace onnxtrain {

class NeedsShape : public Error {
 public:
  NeedsShape(std::string code, std::string message, std::string hint)
      : Error(ErrorKind::kModel, std::move(code), std::move(message), std::move(hint)) {}
};

// OT1205: the rule needs it; OT1206: only the form in standard operators does.
[[noreturn]] inline void needs_shape(std::string code, std::string message, std::string hint = {}) {
  throw NeedsShape(std::move(code), std::move(message), std::move(hint));
}

}  // namespace onnxtrain
