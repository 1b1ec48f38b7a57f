// Integers that stand for real numbers: a gradient passes from DequantizeLinear to QuantizeLinear.
#pragma once
#include "graph/graph.hpp"
#include "op/carries.hpp"

namespace onnxtrain {

// The result of a QuantizeLinear stands for real numbers: a straight-through gradient passes it, in
// the units of those numbers.
inline bool is_quantised(const Graph& g, ValueId v) {
  const NodeId k = g.value(v).producer;
  return k >= 0 && size_t(k) < g.nodes.size() && g.nodes[size_t(k)].is("QuantizeLinear");
}

inline bool carries_gradient(const Graph& g, ValueId v) {
  return carries_gradient(g.value(v).type) || is_quantised(g, v);
}

}  // namespace onnxtrain
