// A profile as a table for people and as JSON.
#pragma once
#include <nlohmann/json.hpp>

#include "engine/profile.hpp"

namespace onnxtrain::cli {

// Sums by phase and by operator, then the slowest nodes. steps: how many were profiled.
void print_profile(const std::vector<NodeProfile>& nodes, const Peak& peak, int64_t steps,
                   size_t slowest);
nlohmann::json profile_json(const std::vector<NodeProfile>& nodes, const Peak& peak, int64_t steps);

}  // namespace onnxtrain::cli
