// A gradient rule or a lowering that cannot go on without a shape or a type that is not known yet
// says so with needs_shape(). Who applies rules gets that as a value: where it is possible the
// gradient waits for the run, when shapes are numbers (autodiff/deferred_gradient.hpp); otherwise
// it is the user's error like any other.
#pragma once
#include <functional>
#include <optional>

#include "core/error.hpp"

namespace onnxtrain {

struct NeedsShape {
  Error why;
};

// Ends the rule. OT1205: the rule needs it; OT1206: only the form in standard operators does.
[[noreturn]] void needs_shape(std::string code, std::string message, std::string hint = {});
// Ends the outer rule with what an inner one lacked.
[[noreturn]] void needs_shape(NeedsShape what);

// Applies rules; what they lack, or nothing when they came to their end.
std::optional<NeedsShape> apply_rules(const std::function<void()>& rules);

}  // namespace onnxtrain
