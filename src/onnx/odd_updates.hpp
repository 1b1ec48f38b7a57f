// Training sections that obey every rule and hardly mean what they say.
#pragma once
#include <string>
#include <vector>

#include "model/model.hpp"
#include "onnx/onnx.hpp"

namespace onnxtrain {

struct OddUpdate {
  std::string text, hint;
  bool impossible = false;  // no step can succeed
};

// Optimizers whose results are assigned to something else or to nothing, counters that stand still,
// gradients of tensors that no target reaches, steps along the gradient; impossible: squares and
// counters below 0. Those come first.
std::vector<OddUpdate> odd_updates(const Model& m);

// OT1292 for what is impossible.
void refuse_impossible_updates(const Model& m);
// The same as findings of the checker, for a file in which it found no error.
void add_odd_updates(const Model& m, std::vector<Finding>& found);

}  // namespace onnxtrain
