// GridSample in standard operators, for second derivatives and lowered files.
#pragma once
#include "op/grad_builder.hpp"

namespace onnxtrain::ops {

enum class GridMode { kNearest, kLinear, kCubic };
enum class GridPadding { kZeros, kBorder, kReflection };

struct GridSettings {
  GridMode mode;
  GridPadding padding;
  bool align;
};

// Samples x [N, C, sizes...] at grid [N, places..., dims]; shapes must be known.
ValueId grid_sample_standard(GradBuilder& b, const GridSettings& s, ValueId x, ValueId grid);

// Gradients of <dy, f(xs)> with respect to xs where f is made of operators that have rules: xs are
// copied first, so that nothing flows on through what made them. Zeros where nothing flows.
template <class F>
std::vector<ValueId> gradients_of(GradBuilder& b, const std::vector<ValueId>& xs, ValueId dy, F f) {
  std::vector<ValueId> copies;
  for (ValueId x : xs) copies.push_back(x == kNone ? kNone : b.call("Identity", {x}));
  ValueId y = f(copies);
  std::vector<ValueId> wanted;
  for (ValueId c : copies)
    if (c != kNone) wanted.push_back(c);
  std::vector<ValueId> grads = b.differentiate(b.graph(), {y}, {dy}, wanted), out;
  size_t at = 0;
  for (ValueId x : xs) {
    out.push_back(x == kNone ? kNone : grads[at++]);
    if (x != kNone && out.back() == kNone) out.back() = b.zeros_like(x);
  }
  return out;
}

}  // namespace onnxtrain::ops
