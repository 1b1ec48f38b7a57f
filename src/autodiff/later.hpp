// Gradients that wait for the run: a rule that needs shapes (or lengths and axes) which nobody
// knows before it is worked out when they are known, as a graph of its own.
#pragma once
#include "autodiff/autodiff.hpp"

namespace onnxtrain {

// Could the gradient of a node whose rule lacks a shape (NeedsShape) wait?
bool can_wait(const Node& n, const Op& op);

// A RunLater node that computes the gradients of <dys, outputs of n> with respect to the wanted
// inputs; kNone for the others. `why`: what the rule said.
std::vector<ValueId> gradient_later(Graph& g, const Node& n, const std::vector<ValueId>& dys,
                                    const std::vector<char>& wants, const std::string& why,
                                    int opset);

}  // namespace onnxtrain
