// Operators that may make something that is not finite of operands that are (Log, Div). Their
// results are looked at before they are assigned to a state variable.
#pragma once
#include "graph/graph.hpp"

namespace onnxtrain {

// An operator of ai.onnx, said beside its record; while the table is made.
void set_may_overflow(const char* op);
// Such an operator, or a fused chain that holds one (attribute "may_overflow").
bool may_overflow(const Node& n);

}  // namespace onnxtrain
