// Inputs of an operator that its definition takes the square root of. Internal to onnx/.
#pragma once
#include <set>

#include "op/op.hpp"

namespace onnxtrain {

// Their indices: of Adam's inputs (R, T, X, G, M, V) that of V. Such an input cannot be below 0. A
// root of a square does not count. Nothing for an operator without a text of its own.
std::set<size_t> rooted_inputs(const Op& op);

}  // namespace onnxtrain
