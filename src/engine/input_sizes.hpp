// Inputs of a model whose sizes contradict each other.
#pragma once
#include <vector>

#include "core/error.hpp"
#include "graph/graph.hpp"

namespace onnxtrain {

// Inputs that share an open dimension and have different sizes there: that, and not the node where
// it shows (e), is the mistake. Throws when there are such.
void blame_inputs(const Graph& g, const std::vector<Value>& inputs, const Error& e);

}  // namespace onnxtrain
