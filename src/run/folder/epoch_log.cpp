// The log of epochs.
#include "run/folder/epoch_log.hpp"

#include <fstream>

namespace onnxtrain::run {

std::vector<nlohmann::ordered_json> epoch_lines(const std::string& folder) {
  std::vector<nlohmann::ordered_json> rows;
  std::ifstream in(folder + "/metrics.jsonl");
  for (std::string line; std::getline(in, line);) {
    auto j = nlohmann::ordered_json::parse(line, nullptr, false);
    if (j.is_object()) rows.push_back(std::move(j));
  }
  return rows;
}

}  // namespace onnxtrain::run
