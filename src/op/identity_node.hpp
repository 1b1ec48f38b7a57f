// An Identity, so that a value keeps its number and name when another node makes it.
#pragma once
#include "graph/graph.hpp"

namespace onnxtrain {

inline Node identity_node(const Graph& g, ValueId made, ValueId output, int opset) {
  Node id;
  id.op = "Identity";
  id.version = opset;
  id.name = g.value_name(output);
  id.inputs = {made};
  id.outputs = {output};
  return id;
}

}  // namespace onnxtrain
