// The pieces of which the functions of the optimizers are made: ONNX text in standard operators.
// Files hold these functions: a change of names or order changes the bytes of every file.
#pragma once
#include <string>
#include <vector>

namespace onnxtrain::ops {

// An attribute and what its float64 scalar is called in the text.
struct FunctionAttribute {
  const char *name, *as;
};
// Those of Adam and its relatives.
inline const std::vector<FunctionAttribute> kAdamAttributes = {
    {"beta1", "b1"}, {"beta2", "b2"}, {"epsilon", "e"}, {"decay", "d"}};

// A whole function; `one` is 1.
std::string function_text(const std::string& name, const std::vector<FunctionAttribute>& attributes,
                          const char* inputs, const char* outputs, const std::string& body);

// The text for the record's `function`, which is kept for the life of the process.
const char* keep_text(std::string text);

// r: the learning rate in float64; t: the step number.
inline constexpr const char* kRateAndStep = "  t = Cast <to = 11> (T)\n  r = Cast <to = 11> (R)\n";

// Decay d added to the gradient: g, kept (the weights to subtract from).
inline constexpr const char* kCoupledDecay = R"(
  dx = CastLike (d, X)
  l2 = Mul (dx, X)
  g = Add (G, l2)
  kept = Identity (X)
)";

// Decay of the weights by the learning rate r: kept, g.
std::string decoupled_decay(const char* rate = "r");

// Factors of the moments in X's type: c1, c2, k2, and eps.
inline constexpr const char* kFactors = R"(
  n1 = Sub (one, b1)
  n2 = Sub (one, b2)
  c1 = CastLike (n1, X)
  c2 = CastLike (n2, X)
  k2 = CastLike (b2, X)
  eps = CastLike (e, X)
)";

// The mean of the gradients, M1.
std::string mean(const char* gradient);
// The mean of their squares, V1, from V keep + g g take.
std::string mean_square(const char* gradient, const char* keep, const char* take);
// Both with kFactors.
std::string moments(const char* gradient);

}  // namespace onnxtrain::ops
