// The equation of Einsum: which label names which dimension.
#pragma once
#include <string>
#include <vector>

#include "core/shape.hpp"

namespace onnxtrain::ops {

// Terms as written ("...ij"), without blanks; the output is derived when it is not given.
struct EinsumTerms {
  std::vector<std::string> inputs;
  std::string output;
  EinsumTerms(const std::string& equation, size_t operands);
  std::string equation() const;
};

// Labels as numbers, dots expanded: dims[label], labels of each operand and of the output. The
// first labels are those of the output, in its order; the rest are summed over.
struct EinsumPlan {
  std::vector<std::vector<int>> inputs;
  std::vector<int> output;
  Shape dims;
  Shape out_shape;
  size_t kept = 0;  // labels of the output
  // strides[operand][label]: 0 where it does not have it, or is broadcast
  std::vector<Shape> strides;
  EinsumPlan(const EinsumTerms& terms, const std::vector<Shape>& shapes);
};

}  // namespace onnxtrain::ops
