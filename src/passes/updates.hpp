// Which nodes are optimizer updates that the passes group, move and scale.
#pragma once
#include <string>

#include "op/op.hpp"

namespace onnxtrain {

// An attribute of an update: its last input is a number that every gradient is multiplied by.
inline constexpr const char* kScaled = "scaled";

// The operator whose update the node makes: its own, or the rule of a MultiUpdate.
inline std::string update_rule(const Node& n) {
  return n.is("MultiUpdate", kOwnDomain) ? n.s("rule", "") : n.op;
}

// The form of an update of one tensor that has a vector form; null for other nodes.
inline const UpdateForm* update_form(const Node& n, const OpTable& table) {
  const Op* op = table.find(n.domain, update_rule(n), n.version);
  if (!op || !op->update || !op->update->vector) return nullptr;
  const UpdateForm& f = *op->update;
  const int scaled = n.i(kScaled, 0) == 1;
  return int(n.inputs.size()) == f.scalars + 2 + f.states + scaled ? &f : nullptr;
}

}  // namespace onnxtrain
