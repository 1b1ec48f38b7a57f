// A node in front of a network, and its result, under a name that tells what it does.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.hpp"

namespace onnxtrain {

inline ValueId add_named(Graph& g, Node n, const std::string& name) {
  n.name = g.unique_name(name);
  return g.add_node(std::move(n), 1, name)[0];
}

inline ValueId add_named(Graph& g, const char* op, int opset, std::vector<ValueId> in,
                         const std::string& name, Attributes attrs) {
  Node n;
  n.op = op;
  n.version = opset;
  n.inputs = std::move(in);
  n.attrs = std::move(attrs);
  return add_named(g, std::move(n), name);
}

}  // namespace onnxtrain
