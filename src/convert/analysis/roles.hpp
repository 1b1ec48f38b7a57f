// What every initializer is to a training, with the reason (docs/recipe.md, "What is trained").
#pragma once
#include "convert/analysis.hpp"

namespace onnxtrain {

enum class Role {
  kTrained,
  kFrozen,     // by freeze or only
  kConstant,   // no weight, by the rule
  kStatistic,  // running statistics of a BatchNormalization
  kStopped,    // a weight, but the gradient of the loss stops before it
  kElsewhere,  // a weight of another output than the loss reads
  kUnused,     // nothing reads it
  kIntegers,   // quantised weights
};
const char* role_name(Role r);

struct InitializerRole {
  ValueId value = kNone;
  Role role = Role::kTrained;
  std::string because;
  NodeId stop = -1;  // kStopped: the last node that the gradient does not pass
};

// Of every floating-point initializer, and of quantised weights, in graph order.
std::vector<InitializerRole> initializer_roles(const Model& m, const Recipe& r,
                                               const std::vector<TermSource>& terms,
                                               const OpTable& ops);

// Weights that the recipe did not freeze and that do not train all the same, one entry per cause.
std::vector<LeftOut> left_out(const Model& m, const std::vector<InitializerRole>& roles);

// Why the gradient rule of a node gives nothing for this input (Round, Detach); null where it gives
// something.
const char* flat_input(const Node& n, size_t input);

// Why no gradient passes from the outputs of a node to this input; "" when one does. Only nodes
// whose outputs can carry one are asked.
std::string stops_at(const Graph& g, const Node& n, size_t input, const OpTable& ops);

}  // namespace onnxtrain
