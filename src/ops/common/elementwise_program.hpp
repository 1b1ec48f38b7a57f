// Element-wise float32 programs over cache-sized tiles: one step is an operator's "simd" path, many
// are a fused chain that goes through memory once.
#pragma once
#include <array>

#include "kernels/elementwise/elementwise.hpp"
#include "op/op.hpp"

namespace onnxtrain::ops {

struct MicroStep {
  simd::MicroOp op;
  // operands: k < inputs is input k of the node, inputs + s is the result of step s
  std::array<int, 3> in = {0, 1, 2};
  std::array<float, 2> params = {0, 0};
};

inline constexpr size_t kMaxMicroInputs = 12, kMaxMicroSteps = 24;

// The last step gives the output. Inputs are float or bool (masks) and broadcast in any way.
Kernel micro_kernel(Prepare& p, std::vector<MicroStep> steps);

// "" when all inputs and the output are float32 or bool; otherwise the reason.
std::string micro_refuses(const Prepare& p);

// An implementation that is one step.
template <simd::MicroOp M>
Kernel make_micro(Prepare& p) {
  return micro_kernel(p, {MicroStep{M}});
}
template <simd::MicroOp M>
Impl micro_impl() {
  return {"simd", micro_refuses, make_micro<M>};
}

}  // namespace onnxtrain::ops
