// Gradients of a model's parameters against finite differences.
#pragma once
#include <string>
#include <vector>

#include "core/budget.hpp"
#include "model/model.hpp"

namespace onnxtrain::cli {

struct GradientCheck {
  std::string name;
  double gradient = 0, measured = 0;  // along a random direction
  double error = 0;                   // their gap, relative to the larger
  double noise = 0;                   // how far two finite differences are apart, likewise
  bool ok = true;
};

// The sum of all floating-point outputs with random weights, on a random batch, differentiated with
// respect to every parameter. Throws OT1203 with all nodes that have no gradient.
std::vector<GradientCheck> check_gradients(const Model& m, uint64_t seed, const Limits& limits);

}  // namespace onnxtrain::cli
