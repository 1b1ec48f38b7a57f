// Models that were made to learn several targets at once: one output for each.
#pragma once
#include <map>
#include <string>
#include <vector>

namespace onnxtrain {

struct TrainedOutput {
  std::string name;   // of the output, and of the column that it learns
  std::string loss;   // mse or cross_entropy
  double weight = 1;  // of the loss in the sum
};

// What a file says about its outputs; empty for a model with one target.
std::vector<TrainedOutput> trained_outputs(const std::map<std::string, std::string>& metadata);
std::string trained_outputs_text(const std::vector<TrainedOutput>& outputs);
inline constexpr const char* kOutputsKey = "onnxtrain.outputs";

}  // namespace onnxtrain
