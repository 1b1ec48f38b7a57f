// Which values an output can have, as far as the graph tells.
#pragma once
#include <limits>

#include "model/model.hpp"

namespace onnxtrain {

struct OutputRange {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool raw = false;  // a weighted sum made it (Gemm, Conv, a bias added): any value can come
  bool in(double a, double b) const { return low >= a && high <= b; }
};

OutputRange output_range(const Graph& g, ValueId v);

// The nearest tensor before `v` that a weighted sum makes: the scores behind an activation that
// the graph spells out; kNone when there is none.
ValueId scores_before(const Graph& g, ValueId v);

}  // namespace onnxtrain
