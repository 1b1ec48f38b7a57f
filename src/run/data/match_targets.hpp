// Which column is the target of which loss.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "data/columns/dataset.hpp"
#include "model/model.hpp"

namespace onnxtrain::run {

// Of several targets: a column called like the output that learns it, whatever the order; then the
// named columns that are left, in their order. What `map` has already stays. OT2106 when there are
// more or fewer named columns than targets.
void match_targets(const Dataset& data, const Model& m, const std::vector<std::string>& inputs,
                   const std::vector<std::string>& targets,
                   std::map<std::string, std::string>& map);

}  // namespace onnxtrain::run
