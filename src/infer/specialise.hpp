// Specialises a graph for concrete input types: shapes become numbers, everything that follows
// from shapes and constants alone is computed now, nodes that produce it disappear.
#pragma once
#include "op/op.hpp"

namespace onnxtrain {

struct SpecialiseOptions {
  int64_t fold_limit = int64_t(1) << 28;  // bytes of a folded constant whose inputs are constants
  int64_t shape_fold_limit = int64_t(1) << 16;  // bytes folded from types alone
  bool loop_lengths = false;  // for a graph that is looked at, not run (subgraphs.hpp)
};

// Inputs of `g` must already carry their concrete types where they are known. Afterwards every
// value with a concrete type is static; the others are dynamic.
void specialise(Graph& g, const OpTable& table, ThreadPool& pool, const SpecialiseOptions& o = {});

}  // namespace onnxtrain
