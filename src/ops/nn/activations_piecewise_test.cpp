// Activations in pieces: gradients away from their kinks, and PyTorch's choice at the kinks.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(ActivationsPiecewise, Gradients) {
  struct {
    const char* op;
    int version;
  } cases[] = {
      {"Relu", 14}, {"LeakyRelu", 16},       {"Elu", 22},         {"Selu", 22},      {"Selu", 1},
      {"Celu", 12}, {"ThresholdedRelu", 10}, {"HardSigmoid", 22}, {"HardSwish", 14}, {"Shrink", 9},
      {"Abs", 13}};
  Tensor x = floats({-4.1f, -2.3f, -0.7f, -0.2f, 0.15f, 0.6f, 1.3f, 2.2f, 3.7f}, {3, 3});
  for (const auto& c : cases) {
    OpCase(c.op, c.version).input(x).check_grad();
    OpCase(c.op, c.version).input(Tensor(DType::kFloat, {0, 2})).check_grad();
  }
  for (const char* op : {"LeakyRelu", "Elu", "Selu", "Celu", "ThresholdedRelu", "HardSigmoid"})
    OpCase(op, 24).attr("alpha", 0.3f).input(x).check_grad();
  OpCase("LeakyRelu", 16).attr("alpha", -0.5f).input(x).check_grad();
  OpCase("Shrink", 9).attr("bias", 0.3f).attr("lambd", 1.0f).input(x).check_grad();
  OpCase("Sign", 13).input(x).check_grad();
}

TEST(ActivationsPiecewise, Values) {
  Tensor x = floats({-2, -0.25f, 0, 0.5f, 4});
  auto check = [&](OpCase c, const std::vector<float>& want) { c.input(x).expect(floats(want)); };
  const float e2 = std::exp(-2.f) - 1, e4 = std::exp(-0.25f) - 1;
  check(OpCase("Relu", 14), {0, 0, 0, 0.5f, 4});
  check(OpCase("Abs", 13), {2, 0.25f, 0, 0.5f, 4});
  check(OpCase("Sign", 13), {-1, -1, 0, 1, 1});
  check(OpCase("LeakyRelu", 16).attr("alpha", 0.5f), {-1, -0.125f, 0, 0.5f, 4});
  check(OpCase("Elu", 22).attr("alpha", 2.0f), {2 * e2, 2 * e4, 0, 0.5f, 4});
  check(OpCase("Selu", 22).attr("alpha", 2.0f).attr("gamma", 3.0f), {6 * e2, 6 * e4, 0, 1.5f, 12});
  check(OpCase("Celu", 12).attr("alpha", 2.0f),
        {2 * (std::exp(-1.f) - 1), 2 * (std::exp(-0.125f) - 1), 0, 0.5f, 4});
  check(OpCase("ThresholdedRelu", 10).attr("alpha", 0.4f), {0, 0, 0, 0.5f, 4});
  check(OpCase("HardSigmoid", 22).attr("alpha", 0.25f), {0, 0.4375f, 0.5f, 0.625f, 1});
  check(OpCase("HardSwish", 14), {-1 / 3.f, -0.25f * 2.75f / 6, 0, 0.5f * 3.5f / 6, 4});
  check(OpCase("Shrink", 9).attr("bias", 0.5f).attr("lambd", 1.0f), {-1.5f, 0, 0, 0, 3.5f});
}

TEST(ActivationsPiecewise, Kinks) {
  Tensor x = floats({-1000, 1000, 0}), one = floats({1, 1, 1});
  auto grad = [&](const char* op) { return OpCase(op, 1, std::string(kOwnDomain)).input(one); };
  grad("ReluGrad").input(floats({0, 1, 0})).expect(floats({0, 1, 0}));
  grad("AbsGrad").input(x).expect(floats({-1, 1, 0}));
  grad("LeakyReluGrad").attr("alpha", 0.5f).input(x).expect(floats({0.5f, 1, 0.5f}));
}

}  // namespace onnxtrain::testing
