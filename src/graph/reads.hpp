// Which values of a graph something reads.
#pragma once
#include <vector>

#include "graph/graph.hpp"

namespace onnxtrain {

// By ValueId: does a node read it, a capture of a subgraph included?
std::vector<char> values_read(const Graph& g);

// The same, with the graph's outputs and what must be kept.
std::vector<char> values_used(const Graph& g, const std::vector<ValueId>& keep);

}  // namespace onnxtrain
