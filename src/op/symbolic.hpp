// Types of a node whose input shapes are not all numbers, from the operator's ordinary shape
// function: it is asked twice, with different numbers in place of the unknown sizes; what stays the
// same is a number, what follows one of the unknown sizes is that size.
#pragma once
#include "op/op.hpp"

namespace onnxtrain {

// Fills in types of the node's outputs as far as they follow; false if nothing does.
bool infer_symbolic(Graph& g, const Node& n, const Op& op);

}  // namespace onnxtrain
