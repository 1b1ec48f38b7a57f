// A profile as a table for people and as JSON.
#pragma once
#include <nlohmann/json.hpp>

#include "engine/profile.hpp"

namespace onnxtrain::cli {

// Sums by phase and by operator, the slowest nodes, how the plan was made. steps: how many were
// profiled. With -v: every kernel that was chosen, and why the faster ones refused.
void print_profile(const Profiler& profile, const Peak& peak, int64_t steps, size_t slowest);
nlohmann::json profile_json(const Profiler& profile, const Peak& peak, int64_t steps);
// Chosen kernels by operator with the refusals of faster ones.
void print_kernels(const std::vector<NodeProfile>& nodes);

}  // namespace onnxtrain::cli
