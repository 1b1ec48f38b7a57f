// How many rows a model takes at once.
#pragma once
#include "graph/graph.hpp"

namespace onnxtrain {

// Is this input fed with rows? Numbers that stand for themselves (scalars) and initializers are
// not.
bool has_rows(const Graph& g, ValueId input);

// The number that the file fixes as the first dimension of every input that takes rows; 0 when the
// size is open, or not the same everywhere.
int64_t fixed_batch(const Graph& main);

}  // namespace onnxtrain
