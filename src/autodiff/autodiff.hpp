// Reverse-mode differentiation, graph -> graph: the backward pass is ordinary nodes, so every pass
// and the planner treat it like the forward pass.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "op/op.hpp"

namespace onnxtrain {

inline constexpr int kGradOpset =
    22;  // opset of nodes made by gradient rules unless asked otherwise

// While one lives, nodes that rules make on this thread are named NODE_grad/OUTPUT after the node
// that the rule is for: to trace a value to a node that the file's author knows. Files keep the
// plain names.
class GradientNames {
 public:
  GradientNames();
  ~GradientNames();
  GradientNames(const GradientNames&) = delete;
  GradientNames& operator=(const GradientNames&) = delete;
};
inline constexpr std::string_view kGradientMark = "_grad/";

// Gradients of sum_i <cotangent_i, y_i> with respect to xs, as values of `g` (nodes are appended).
// cotangents: one per y; kNone = ones (ruling G12). A result is kNone when y does not depend on
// that x. An operator without derivative on a needed path is an error that lists every such node.
std::vector<ValueId> differentiate(Graph& g, const OpTable& table, const std::vector<ValueId>& ys,
                                   const std::vector<ValueId>& cotangents,
                                   const std::vector<ValueId>& xs, int opset = kGradOpset);

// Replaces every Gradient node (ai.onnx.preview.training) by the nodes that compute it; true if
// there was one. Nodes must have been through resolve_gradients.
bool expand_gradients(Graph& g, const OpTable& table, int opset = kGradOpset);

// Gradient names its tensors by strings; this appends the values themselves to the node's inputs
// (xs, zs, then y), so that passes keep them right. Done once, when names are still those of the
// file.
void resolve_gradients(Graph& g);

}  // namespace onnxtrain
