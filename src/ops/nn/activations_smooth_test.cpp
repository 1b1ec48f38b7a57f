// Smooth activations: values, extremes and gradients.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(ActivationsSmooth, Gradients) {
  struct {
    const char* op;
    int version;
  } cases[] = {{"Sigmoid", 13}, {"Softplus", 22}, {"Softsign", 22},
               {"Mish", 18},    {"Gelu", 20},     {"Swish", 24}};
  Tensor x = floats({-4.1f, -2.3f, -0.7f, -0.2f, 0.15f, 0.6f, 1.3f, 2.2f, 3.7f}, {3, 3});
  for (const auto& c : cases) {
    OpCase(c.op, c.version).input(x).check_grad();
    OpCase(c.op, c.version).input(Tensor(DType::kFloat, {0, 2})).check_grad();
  }
  OpCase("Swish", 24).attr("alpha", 0.3f).input(x).check_grad();
  OpCase("Gelu", 20).attr("approximate", std::string("tanh")).input(x).check_grad();
}

TEST(ActivationsSmooth, Values) {
  const std::vector<float> at = {-2, -0.25f, 0, 0.5f, 3};
  auto check = [&](OpCase c, auto fn) {
    std::vector<float> want;
    for (float v : at) want.push_back(float(fn(double(v))));
    c.input(floats(at)).expect(floats(want));
  };
  auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  auto softplus = [](double v) { return std::log1p(std::exp(v)); };
  check(OpCase("Sigmoid", 13), sigmoid);
  check(OpCase("Softplus", 22), softplus);
  check(OpCase("Softsign", 22), [](double v) { return v / (1 + std::fabs(v)); });
  check(OpCase("Mish", 18), [&](double v) { return v * std::tanh(softplus(v)); });
  check(OpCase("Swish", 24).attr("alpha", 0.5f), [&](double v) { return v * sigmoid(0.5 * v); });
  check(OpCase("Gelu", 20), [](double v) { return 0.5 * v * (1 + std::erf(v / std::sqrt(2.0))); });
  check(OpCase("Gelu", 20).attr("approximate", std::string("tanh")), [](double v) {
    return 0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
  });
}

TEST(ActivationsSmooth, Extremes) {
  Tensor x = floats({-1000, 1000, 0});
  OpCase("Sigmoid", 13).input(x).expect(floats({0, 1, 0.5f}));
  OpCase("Softplus", 22).input(x).expect(floats({0, 1000, 0.69314718f}));
  OpCase("Mish", 22).input(x).expect(floats({0, 1000, 0}));
}

}  // namespace onnxtrain::testing
