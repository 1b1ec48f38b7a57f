// The pieces of which the functions of the optimizers are made: ONNX text in standard operators.
#pragma once
#include <string>
#include <vector>

namespace onnxtrain::ops {

// A whole function. Inside it, the attribute NAME is the float64 scalar d_NAME and `one` is 1.
std::string function_text(const std::string& name, const std::vector<const char*>& attributes,
                          const char* inputs, const char* outputs, const std::string& body);

// The text for the record's `function`, which is kept for the life of the process.
const char* keep_text(std::string text);

// r: the learning rate in float64; t: the step number.
inline constexpr const char* kRate = "  r = Cast <to = 11> (R)\n";
inline constexpr const char* kRateAndStep = "  t = Cast <to = 11> (T)\n  r = Cast <to = 11> (R)\n";

// Decay added to the gradient: g, kept (the weights to subtract from).
inline constexpr const char* kCoupledDecay = R"(
  dx = CastLike (d_decay, X)
  l2 = Mul (dx, X)
  g = Add (G, l2)
  kept = Identity (X)
)";

// Decay of the weights by the learning rate r: kept, g.
inline constexpr const char* kDecoupledDecay = R"(
  rd = Mul (r, d_decay)
  keep = Sub (one, rd)
  k = CastLike (keep, X)
  kept = Mul (X, k)
  g = Identity (G)
)";

// The mean of the gradients, M1.
inline constexpr const char* kMean = R"(
  n1 = Sub (one, d_beta1)
  c1 = CastLike (n1, X)
  gm = Sub (g, M)
  gmc = Mul (gm, c1)
  M1 = Add (M, gmc)
)";

// The mean of their squares, V1, that keeps the share d_SHARE of what it was.
std::string mean_square(const std::string& share);

// What is missing to 1 in the moments of Adam: q1, q2.
inline constexpr const char* kCorrection1 = R"(
  p1 = Pow (d_beta1, t)
  q1 = Sub (one, p1)
)";
inline constexpr const char* kCorrection2 = R"(
  p2 = Pow (d_beta2, t)
  q2 = Sub (one, p2)
)";

// The last lines: X1 = kept - (learning rate in X's type) * way.
inline constexpr const char* kMoveAlong = R"(
  rx = CastLike (R, X)
  move = Mul (rx, way)
  X1 = Sub (kept, move)
)";

}  // namespace onnxtrain::ops
