// Random values for inputs of a model, for checks that need any batch.
#pragma once
#include <vector>

#include "engine/session.hpp"
#include "graph/graph.hpp"

namespace onnxtrain::cli {

// Unknown sizes: `batch` for the first dimension, a small number for the others. Floating-point
// values are normal, integers 0 or 1.
Tensor random_value(const ValueDef& d, int64_t batch, uint64_t seed);
Feeds random_feeds(const Model& m, int64_t batch, uint64_t seed = 0);

}  // namespace onnxtrain::cli
