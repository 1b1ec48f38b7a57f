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
// The names that the settings of Adam and its relatives have in the texts: prepare's optimizers use
// short ones; those that came with the converters long ones.
struct AdamNames {
  const char *beta1 = "b1", *beta2 = "b2", *epsilon = "e", *decay = "d";
  std::vector<FunctionAttribute> attributes() const {
    return {{"beta1", beta1}, {"beta2", beta2}, {"epsilon", epsilon}, {"decay", decay}};
  }
};
inline constexpr AdamNames kLongNames{"d_beta1", "d_beta2", "d_epsilon", "d_decay"};

// A whole function; `one` is 1.
std::string function_text(const std::string& name, const std::vector<FunctionAttribute>& attributes,
                          const char* inputs, const char* outputs, const std::string& body);

// The text for the record's `function`, which is kept for the life of the process.
const char* keep_text(std::string text);

// r: the learning rate in float64; t: the step number.
inline constexpr const char* kLearningRateAndStep =
    "  t = Cast <to = 11> (T)\n  r = Cast <to = 11> (R)\n";

// Decay added to the gradient: g, kept (the weights to subtract from).
std::string coupled_decay(const char* decay = "d");
// Decay of the weights by the learning rate: kept, g.
std::string decoupled_decay(const char* lr = "r", const char* decay = "d");

// Factors of the moments in X's type: c1, c2, k2, and eps.
std::string factors(const AdamNames& names = {});

// The mean of the gradients, M1, with the factor c1.
std::string mean(const char* gradient);
// The mean of their squares, V1 = V keep + g g take.
std::string mean_square(const char* gradient, const char* keep, const char* take);
// Both with the factors.
std::string moments(const char* gradient);

}  // namespace onnxtrain::ops
