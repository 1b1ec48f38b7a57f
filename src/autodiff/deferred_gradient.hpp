// Deferred gradients: a rule that needs shapes (or lengths and axes) which are unknown before the
// run is applied when they are known, in a graph of its own.
#pragma once
#include "autodiff/autodiff.hpp"

namespace onnxtrain {

// Is this the error of a rule that lacks a shape, and can the node's gradient be deferred?
bool can_defer(const Node& n, const Op& op, const std::string& code);

// A DeferredGradient node that computes the gradients of <dys, outputs of n> with respect to the
// wanted inputs; kNone for the others. `why`: what the rule said.
std::vector<ValueId> deferred_gradient(Graph& g, const Node& n, const std::vector<ValueId>& dys,
                                       const std::vector<char>& wants, const std::string& why,
                                       int opset);

}  // namespace onnxtrain
