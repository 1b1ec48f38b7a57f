// Training sections that obey every rule and hardly mean what they say.
#pragma once
#include <string>
#include <vector>

#include "model/model.hpp"

namespace onnxtrain {

struct OddUpdate {
  std::string text, hint;
};

// Optimizers whose results are assigned to something else or to nothing, counters that stand still,
// gradients of tensors that no target reaches.
std::vector<OddUpdate> odd_updates(const Model& m);

}  // namespace onnxtrain
