// Graphs written node by node, for tests of passes.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "op/op.hpp"

namespace onnxtrain::testing {

using Attrs = Attributes;

// Adds a node with one output, named after it, of known type; an operator of ours has version 1.
inline ValueId add_call(Graph& g, std::string op, std::vector<ValueId> in, Attrs attrs = {},
                        std::string domain = "") {
  Node n;
  n.op = std::move(op);
  n.domain = std::move(domain);
  n.version = n.domain.empty() ? 22 : 1;
  n.inputs = std::move(in);
  n.attrs = std::move(attrs);
  ValueId v = g.add_node(std::move(n), 1)[0];
  g.nodes.back().name = g.value_name(v);
  infer_node(g, g.nodes.back(), all_ops());
  return v;
}

}  // namespace onnxtrain::testing
