// Values and gradients of exponentials, roots, trigonometry and rounding.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(UnaryMath, Gradients) {
  struct {
    const char* op;
    double low, high;
  } cases[] = {{"Exp", -1, 1},      {"Log", 0.5, 2},  {"Sqrt", 0.5, 2},  {"Reciprocal", 0.5, 2},
               {"Sin", -1, 1},      {"Cos", -1, 1},   {"Tan", -1, 1},    {"Asin", -0.8, 0.8},
               {"Acos", -0.8, 0.8}, {"Atan", -1, 1},  {"Sinh", -1, 1},   {"Cosh", -1, 1},
               {"Tanh", -1, 1},     {"Asinh", -1, 1}, {"Acosh", 1.5, 3}, {"Atanh", -0.8, 0.8},
               {"Erf", -1, 1}};
  for (const auto& c : cases)
    OpCase(c.op, 22).input(random_tensor({2, 3}, c.low, c.high)).check_grad();
}

TEST(UnaryMath, Values) {
  struct {
    const char* op;
    double (*fn)(double);
    double low, high;
  } cases[] = {
      {"Exp", std::exp, -1, 1},       {"Log", std::log, 0.5, 2},
      {"Sqrt", std::sqrt, 0.5, 2},    {"Reciprocal", [](double v) { return 1 / v; }, 0.5, 2},
      {"Sin", std::sin, -1, 1},       {"Cos", std::cos, -1, 1},
      {"Tan", std::tan, -1, 1},       {"Asin", std::asin, -0.8, 0.8},
      {"Acos", std::acos, -0.8, 0.8}, {"Atan", std::atan, -1, 1},
      {"Sinh", std::sinh, -1, 1},     {"Cosh", std::cosh, -1, 1},
      {"Tanh", std::tanh, -1, 1},     {"Asinh", std::asinh, -1, 1},
      {"Acosh", std::acosh, 1.5, 3},  {"Atanh", std::atanh, -0.8, 0.8},
      {"Erf", std::erf, -1, 1},       {"Ceil", std::ceil, -3, 3},
      {"Floor", std::floor, -3, 3}};
  for (const auto& c : cases) {
    Tensor x = random_tensor({3, 7}, c.low, c.high), want(DType::kFloat, {3, 7});
    for (int64_t i = 0; i < x.size(); ++i)
      want.as<float>()[i] = float(c.fn(double(x.as<float>()[i])));
    OpCase(c.op, 22).input(x).expect(want);
  }
  OpCase("Round", 22)
      .input(floats({0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 0.4f, -2.6f}))
      .expect(floats({0, 2, 2, 0, -2, 0, -3}));
}

TEST(UnaryMath, RoundingHasNoSlope) {
  for (const char* op : {"Ceil", "Floor", "Round"})
    OpCase(op, 22).input(random_tensor({2, 3}, 0.1, 0.4)).check_grad();
}

}  // namespace onnxtrain::testing
