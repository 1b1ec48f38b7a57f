// The ways between xs and ys in a graph.
#pragma once
#include "autodiff/autodiff.hpp"

namespace onnxtrain {

// Per value: is it one of xs, or computed from one along values that carry a gradient?
std::vector<char> depends_on(const Graph& g, const std::vector<ValueId>& xs);

// Replaces the nodes between xs and ys that have no rule by their form in standard operators, which
// have one: our own gradient operators (second derivatives), Scan-8, optimizers. Outputs keep their
// numbers.
void lower_between(Graph& g, const OpTable& table, const std::vector<ValueId>& ys,
                   const std::vector<ValueId>& xs, int opset);

// "boxes -> nms_0 -> Gather_7 -> output 'det'": a shortest way through the node to one of ys.
std::string path_text(const Graph& g, size_t node, const std::vector<char>& active,
                      const std::vector<ValueId>& ys);

}  // namespace onnxtrain
