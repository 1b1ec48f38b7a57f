// Inputs of a graph that another part of the same step has computed.
#pragma once
#include <string_view>

#include "graph/graph.hpp"

namespace onnxtrain {

// Sums over the batch: judged before state is written (runtime/executor.hpp), as what the graph
// computes itself is.
inline constexpr std::string_view kSumInput = "onnxtrain.sum.";
// The same, judged by another process.
inline constexpr std::string_view kJudgedInput = "onnxtrain.all.";
static_assert(kSumInput.size() == kJudgedInput.size());

inline bool is_judged_input(const ValueDef& d) {
  return d.producer < 0 && d.name.starts_with(kSumInput);
}

}  // namespace onnxtrain
