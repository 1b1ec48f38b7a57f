// Initializers that hold NaN or infinities: damaged weights are refused before a training begins.
#pragma once
#include "convert/analysis/roles.hpp"

namespace onnxtrain {

// The rule (docs/recipe.md, "NaN and infinities in a file"):
// - A weight or a running statistic that the loss depends on: refused (OT1291). What --reset
//   replaces is not looked at.
// - A weight of another output: said (`warnings`).
// - A constant with NaN: said, unless it is a filling, one value that a Where, Pad or the like
//   puts in. Infinities of constants are masks and bounds, and left alone.
void check_values(const Model& m, const Recipe& r, const std::vector<InitializerRole>& roles,
                  std::vector<LeftOut>* warnings);

// A file that carries its training: what the bindings update, except what its own initialization
// replaces.
void check_state_values(const Model& m);

}  // namespace onnxtrain
