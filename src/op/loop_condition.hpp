// What the body of a Loop says about going on.
#pragma once
#include "graph/graph.hpp"

namespace onnxtrain {

// The body returns true, or the condition that it got: only the number of iterations ends the loop.
bool always_goes_on(const Graph& loop_body);

}  // namespace onnxtrain
