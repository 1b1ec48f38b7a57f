// Gradient nodes in the bodies of If, Loop and Scan whose way from xs to y leads through tensors of
// the enclosing graph.
#pragma once
#include "graph/graph.hpp"

namespace onnxtrain {

// Copies the nodes of that way into the body, so that it is differentiated whole. Gradient nodes
// must have been resolved. A random operator on the way is refused: its copy would draw other
// numbers.
void bring_ways_into_bodies(Graph& g);

}  // namespace onnxtrain
