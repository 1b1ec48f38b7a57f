// What makes a graph in a file invalid: the one list of these problems, with their codes and words.
// The checker collects them, the reader (which also reads function bodies that were made for a
// node, and files that nobody checked) throws the first. Internal to onnx/.
#pragma once
#include <string>

#include "core/error.hpp"
#include "onnx/message/source.hpp"

namespace onnxtrain::validity {

struct Problem {
  std::string code, message, hint;
};

// Throws the problem; where: "graph 'g'", or "" when the message says enough.
[[noreturn]] inline void refuse(const Problem& p, const std::string& where = {}) {
  model_error(p.code, where.empty() ? p.message : cat(where, ": ", p.message), p.hint);
}

inline std::string node_label(const onnx::NodeProto& n) {
  return n.name().empty() ? cat("a node of type ", n.op_type())
                          : cat("node '", n.name(), "' (", n.op_type(), ")");
}

// ---- names
inline Problem long_name(size_t bytes, int64_t limit) {
  return {"OT1003", cat("a name has ", bytes, " bytes; the limit is ", limit), {}};
}
// what: "an initializer", "an output of node 'conv'"
inline Problem no_name(const std::string& what) {
  return {"OT1043", cat(what, " has no name"), {}};
}
inline Problem defined_twice(const std::string& name, const std::string& what) {
  return {"OT1043", cat("'", name, "' is defined twice (", what, ")"),
          "every value name must be assigned exactly once"};
}
inline Problem two_inputs(const std::string& name) {
  return {"OT1043", cat("two inputs are named '", name, "'"), {}};
}
inline Problem never_computed(const std::string& output) {
  return {"OT1045", cat("the output '", output, "' is never computed"), {}};
}

// ---- what a node reads; node: "node 'a' (Add)"
inline Problem undefined(const std::string& node, const std::string& name) {
  return {"OT1044", cat(node, " reads '", name.substr(0, 200), "', which nothing defines"), {}};
}
inline Problem in_cycle(const std::string& node, const std::string& name) {
  return {"OT1110", cat(node, " reads '", name.substr(0, 200), "', which depends on it: a cycle"),
          "a node cannot read what is made of its own result: export the model again"};
}
inline Problem behind_cycle(const std::string& node, const std::string& name) {
  return {"OT1110",
          cat(node, " reads '", name.substr(0, 200), "', which waits for a cycle of nodes"),
          {}};
}
// Told apart by nobody: the reader sees one node at a time.
inline Problem not_there(const std::string& node, const std::string& name) {
  return {"OT1044",
          cat(node, " reads '", name.substr(0, 200),
              "' and nothing defines it: the nodes form a cycle, or a node or initializer is "
              "missing"),
          {}};
}
inline Problem gradient_of_nothing(const std::string& name, const std::string& list) {
  return {"OT1315", cat("'", name, "' in ", list, " does not exist at that point"),
          "name a value that is computed before the Gradient node"};
}

// ---- attributes
inline Problem attribute_twice(const std::string& name) {
  return {"OT1049", cat("attribute '", name, "' is given twice"), {}};
}
inline Problem reference_outside_function(const std::string& name, const std::string& to) {
  return {"OT1057",
          cat("attribute '", name, "' refers to '", to, "', but the node is not in a function"),
          {}};
}
inline Problem wrong_attribute(const std::string& why) { return {"OT1052", why, {}}; }

// ---- sizes
inline Problem too_deep(int limit) {
  return {"OT1003", cat("subgraphs are nested deeper than ", limit, " levels"), {}};
}
inline Problem too_many_dimensions(const std::string& input, int limit) {
  return {"OT1003", cat("the input '", input, "' has more than ", limit, " dimensions"), {}};
}
inline Problem no_type(const std::string& input) {
  return {"OT1046", cat("the input '", input, "' has no type"), {}};
}

}  // namespace onnxtrain::validity
