// Values and gradients of Clip.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

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
