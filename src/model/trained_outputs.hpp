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

// Of a model with one target whose numbers are very small or very large: the weight of its loss, so
// that gradients stay far from an optimizer's epsilon and from overflow. 1: as it is.
inline constexpr const char* kLossWeightKey = "onnxtrain.loss_weight";
double loss_weight(const std::map<std::string, std::string>& metadata);

// What a training with several losses says: {output: loss} and {output: name of its target}.
inline constexpr const char* kLossesKey = "onnxtrain.losses";
inline constexpr const char* kLossTargetsKey = "onnxtrain.loss_targets";

struct OutputLoss {
  std::string output, loss, target;
};
// Every output that has a loss and a target of its own; empty for a training with one.
std::vector<OutputLoss> output_losses(const std::map<std::string, std::string>& metadata);

}  // namespace onnxtrain
