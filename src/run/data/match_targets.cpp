// Columns and losses by name.
#include "run/data/match_targets.hpp"

#include <algorithm>

#include "core/shell.hpp"
#include "model/trained_outputs.hpp"

namespace onnxtrain::run {

namespace {

bool is_among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

void match_targets(const Dataset& data, const Model& m, const std::vector<std::string>& inputs,
                   const std::vector<std::string>& targets,
                   std::map<std::string, std::string>& map) {
  std::vector<std::string> named = data.targets();
  if (!named.empty() && named.size() != targets.size()) {
    std::string all;
    for (const OutputLoss& l : output_losses(m.metadata))
      all += cat(all.empty() ? "" : ",", data.has(l.output) ? l.output : "COLUMN");
    data_error(
        "OT2106",
        cat(targets.size(), " losses learn a column each, and the targets are ", listed(named, 10)),
        cat("name a column for every loss, in their order:  --target ", shell_word(all)));
  }
  for (const OutputLoss& l : output_losses(m.metadata))
    if (is_among(targets, l.target) && data.has(l.output) && !is_among(inputs, l.output) &&
        (named.empty() || is_among(named, l.output)))
      map.try_emplace(l.target, l.output);
  for (const auto& [target, column] : map) std::erase(named, column);
  auto next = named.begin();
  for (const std::string& target : targets)
    if (map.count(target) == 0 && next != named.end() && data.has(*next)) map[target] = *next++;
}

}  // namespace onnxtrain::run
