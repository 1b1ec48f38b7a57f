// Which nodes are optimizer updates, for the passes that group, move and scale them.
#pragma once
#include <string_view>

#include "op/op.hpp"

namespace onnxtrain {

struct UpdateForm {
  const char* op;
  int scalars, states;  // before X and G, behind them
};

// An attribute of an update: its last input is a number that every gradient is multiplied by.
inline constexpr const char* kScaled = "scaled";

// The form of an update of one tensor; null for other nodes. MultiUpdate: that of its rule.
inline const UpdateForm* update_form(const Node& n) {
  static constexpr UpdateForm kOwn[] = {
      {"Sgd", 1, 0},     {"Lion", 1, 1},     {"Adam", 2, 2},      {"AdamW", 2, 2},
      {"AdamAms", 2, 3}, {"AdamWAms", 2, 3}, {"AdamKeras", 2, 2}, {"AdamKerasAms", 2, 3},
  };
  // Of the standard's operators: operands are grouped by kind, R and T first.
  static constexpr UpdateForm kStandard[] = {{"Adagrad", 2, 1}, {"Momentum", 2, 1}, {"Adam", 2, 2}};
  const int scaled = n.i(kScaled, 0) == 1;
  auto one = [&](const UpdateForm& f) {
    return int(n.inputs.size()) == f.scalars + 2 + f.states + scaled;
  };
  if (n.domain == kOwnDomain) {
    const std::string op = n.op == "MultiUpdate" ? n.s("rule", "") : n.op;
    for (const UpdateForm& f : kOwn)
      if (op == f.op && one(f)) return &f;
  }
  if (n.domain == kTrainingDomain)
    for (const UpdateForm& f : kStandard)
      if (n.op == f.op && one(f)) return &f;
  return nullptr;
}

}  // namespace onnxtrain
