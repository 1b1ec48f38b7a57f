// Gradients of activation functions, away from their kinks, and PyTorch's choice at the kinks.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(Activations, Gradients) {
  struct {
    const char* op;
    int version;
  } cases[] = {{"Relu", 14},
               {"LeakyRelu", 16},
               {"Elu", 22},
               {"Selu", 22},
               {"Selu", 1},
               {"Celu", 12},
               {"ThresholdedRelu", 10},
               {"Sigmoid", 13},
               {"HardSigmoid", 22},
               {"HardSwish", 14},
               {"Softplus", 22},
               {"Softsign", 22},
               {"Mish", 18},
               {"Gelu", 20},
               {"Shrink", 9},
               {"Abs", 13},
               {"Swish", 24}};
  Tensor x = Tensor::vector<float>({-4.1f, -2.3f, -0.7f, -0.2f, 0.15f, 0.6f, 1.3f, 2.2f, 3.7f})
                 .reshaped({3, 3});
  for (const auto& c : cases) {
    OpCase(c.op, c.version).input(x).check_grad();
    OpCase(c.op, c.version).input(Tensor(DType::kFloat, {0, 2})).check_grad();
  }
  for (const char* op :
       {"LeakyRelu", "Elu", "Selu", "Celu", "ThresholdedRelu", "HardSigmoid", "Swish"})
    OpCase(op, 24).attr("alpha", 0.3f).input(x).check_grad();
  OpCase("LeakyRelu", 16).attr("alpha", -0.5f).input(x).check_grad();
  OpCase("Gelu", 20).attr("approximate", std::string("tanh")).input(x).check_grad();
  OpCase("Shrink", 9).attr("bias", 0.3f).attr("lambd", 1.0f).input(x).check_grad();
}

TEST(Activations, Extremes) {
  Tensor x = Tensor::vector<float>({-1000, 1000, 0});
  OpCase("Sigmoid", 13).input(x).expect(Tensor::vector<float>({0, 1, 0.5f}));
  OpCase("Softplus", 22).input(x).expect(Tensor::vector<float>({0, 1000, 0.69314718f}));
  OpCase("Mish", 22).input(x).expect(Tensor::vector<float>({0, 1000, 0}));
  Tensor one = Tensor::vector<float>({1, 1, 1});
  auto grad = [&](const char* op) { return OpCase(op, 1, std::string(kOwnDomain)).input(one); };
  grad("ReluGrad").input(Tensor::vector<float>({0, 1, 0})).expect(Tensor::vector<float>({0, 1, 0}));
  grad("AbsGrad").input(x).expect(Tensor::vector<float>({-1, 1, 0}));
  grad("LeakyReluGrad").attr("alpha", 0.5f).input(x).expect(Tensor::vector<float>({0.5f, 1, 0.5f}));
}

TEST(Clip, ValuesAndGradients) {
  Tensor x = Tensor::vector<float>({-2, -0.5f, 0.5f, 2});
  auto f = [](float v) { return Tensor::scalar<float>(v); };
  OpCase("Clip", 6)
      .attr("min", -1.0f)
      .attr("max", 1.0f)
      .input(x)
      .expect(Tensor::vector<float>({-1, -0.5f, 0.5f, 1}));
  OpCase("Clip", 13)
      .input(x)
      .skip_input()
      .input(f(0))
      .expect(Tensor::vector<float>({-2, -0.5f, 0, 0}));
  OpCase("Clip", 13)
      .input(x)
      .input(f(1))
      .input(f(-1))
      .expect(Tensor::vector<float>({-1, -1, -1, -1}));
  OpCase("Clip", 6).attr("min", -1.0f).attr("max", 1.0f).input(x).check_grad();
  OpCase("Clip", 6).input(x).check_grad();
  OpCase("Clip", 13).input(x).input(f(-1)).input(f(1)).check_grad();
  OpCase("Clip", 13).input(x).input(f(-1)).check_grad();
  OpCase("Clip", 13).input(x).skip_input().input(f(1)).check_grad();
  OpCase("Clip", 13).input(x).input(f(1)).input(f(-1)).check_grad();
}

}  // namespace onnxtrain::testing
