// Outputs with their losses, to and from metadata.
#include "model/trained_outputs.hpp"

#include <cmath>
#include <cstdlib>

#include <nlohmann/json.hpp>

namespace onnxtrain {

using nlohmann::json;

std::vector<TrainedOutput> trained_outputs(const std::map<std::string, std::string>& metadata) {
  const auto it = metadata.find(kOutputsKey);
  if (it == metadata.end()) return {};
  const json list = json::parse(it->second, nullptr, false);
  std::vector<TrainedOutput> all;
  if (!list.is_array()) return {};
  for (const json& j : list) {  // the file's word: what makes no sense is passed over
    if (!j.is_object() || !j.contains("output") || !j["output"].is_string()) return {};
    TrainedOutput o;
    o.name = j["output"];
    o.loss = j.contains("loss") && j["loss"] == "cross_entropy" ? "cross_entropy" : "mse";
    if (j.contains("weight") && j["weight"].is_number()) o.weight = j["weight"];
    if (!std::isfinite(o.weight) || o.weight <= 0) o.weight = 1;
    all.push_back(o);
  }
  return all.size() > 1 ? all : std::vector<TrainedOutput>();
}

double loss_weight(const std::map<std::string, std::string>& metadata) {
  const auto it = metadata.find(kLossWeightKey);
  const double w = it == metadata.end() ? 1 : std::strtod(it->second.c_str(), nullptr);
  return std::isfinite(w) && w > 0 ? w : 1;
}

std::vector<OutputLoss> output_losses(const std::map<std::string, std::string>& metadata) {
  const auto said = [&](const char* key) {
    const auto it = metadata.find(key);
    return it == metadata.end() ? nlohmann::ordered_json()
                                : nlohmann::ordered_json::parse(it->second, nullptr, false);
  };
  const auto kinds = said(kLossesKey), targets = said(kLossTargetsKey);
  std::vector<OutputLoss> all;
  if (!kinds.is_object() || !targets.is_object()) return {};
  for (const auto& [output, kind] : kinds.items())
    if (const auto it = targets.find(output);
        kind.is_string() && it != targets.end() && it->is_string())
      all.push_back({output, kind, *it});
  return all.size() > 1 ? all : std::vector<OutputLoss>();
}

std::string trained_outputs_text(const std::vector<TrainedOutput>& outputs) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const TrainedOutput& o : outputs)
    list.push_back({{"output", o.name}, {"loss", o.loss}, {"weight", o.weight}});
  return list.dump();
}

}  // namespace onnxtrain
