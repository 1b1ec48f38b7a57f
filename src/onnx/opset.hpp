// Does a node mean the same in another opset?
#pragma once
#include <string>

#include "graph/graph.hpp"

namespace onnxtrain {

// "" when the node, with the attributes and inputs it has, is valid in this opset of its domain and
// means the same there; otherwise why not: "has the attribute 'axes', which came in opset 18".
std::string misfit(const Node& n, int opset);

}  // namespace onnxtrain
