// What has to be finite before a plan writes to state.
#pragma once
#include <vector>

#include "plan/plan.hpp"

namespace onnxtrain {

// Fills in first_write, watched, assigns_unseen and narrow of a plan whose steps and updates are
// complete. unsure: by value, new values of state that may overflow and what follows from them.
void find_watched(Plan& plan, const std::vector<char>& unsure);

}  // namespace onnxtrain
