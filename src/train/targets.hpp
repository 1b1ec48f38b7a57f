// What a training file says about its targets: which output they are compared with, where its
// classes lie, which label is ignored.
#pragma once
#include <optional>
#include <string>

#include "model/model.hpp"

namespace onnxtrain {

struct TargetInfo {
  std::string output;         // of the main graph; "" when there is none that could be compared
  int64_t axis = 1;           // along which its classes lie
  int64_t classes = 0;        // 0: not known
  bool probabilities = false; // it ends in a Sigmoid or Softmax
  std::optional<int64_t> ignore_index;
};

TargetInfo target_info(const Model& m);
// Inputs that the main graph has are data, the others are targets.
bool is_target(const Model& m, const std::string& input);

}  // namespace onnxtrain
