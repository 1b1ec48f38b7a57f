// How a parameter starts: a constant, a uniform or a normal distribution. Drawn from the
// counter-based generator, so a name and a seed give the same numbers everywhere.
#pragma once
#include <string>

#include "core/tensor.hpp"

namespace onnxtrain {

struct InitialValue {
  enum class Kind { kConstant, kUniform, kNormal } kind = Kind::kConstant;
  double value = 0;  // the constant; the bound of a uniform in [-value, value); the deviation

  static InitialValue constant(double v) { return {Kind::kConstant, v}; }
  static InitialValue uniform(double bound) { return {Kind::kUniform, bound}; }
  static InitialValue normal(double deviation) { return {Kind::kNormal, deviation}; }
  bool is_constant() const { return kind == Kind::kConstant; }
};

// A tensor of a floating-point type; `name` chooses the stream of random numbers.
Tensor draw(DType type, const Shape& shape, const InitialValue& start, uint64_t seed,
            const std::string& name);

}  // namespace onnxtrain
