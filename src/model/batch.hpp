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

// The name of the dimension that counts rows: what outputs begin with and inputs have too; "" when
// there is none.
std::string rows_symbol(const Graph& main);

// Throws OT2117 when the rows of an input lie along another dimension than the first (a recurrent
// layer with time first): data has them first.
void require_rows_first(const Graph& main);

}  // namespace onnxtrain
