// metrics.jsonl of a run folder, read.
#pragma once
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace onnxtrain::run {

// One object per line; a line that a killed process left torn is passed over.
std::vector<nlohmann::ordered_json> epoch_lines(const std::string& folder);

}  // namespace onnxtrain::run
