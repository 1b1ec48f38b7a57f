// Values of ConvInteger and QLinearConv.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(ConvInteger, ZeroPoint) {
  Tensor x = Tensor::vector<uint8_t>({2, 3, 4, 5, 6, 7, 8, 9, 10}).reshaped({1, 1, 3, 3});
  Tensor w = Tensor::vector<uint8_t>({1, 1, 1, 1}).reshaped({1, 1, 2, 2});
  OpCase("ConvInteger", 10)
      .input(x)
      .input(w)
      .input(Tensor::scalar<uint8_t>(1))
      .expect(Tensor::vector<int32_t>({12, 16, 24, 28}).reshaped({1, 1, 2, 2}));
}

TEST(QLinearConv, Values) {
  // ((2 - 1) + (3 - 1)) * 0.5 * 4 / 2 + 7 and so on
  auto scale = [](float v) { return Tensor::scalar<float>(v); };
  auto zero = [](uint8_t v) { return Tensor::scalar<uint8_t>(v); };
  OpCase("QLinearConv", 10)
      .input(Tensor::vector<uint8_t>({2, 3, 5, 250}).reshaped({1, 1, 4}))
      .input(scale(0.5f))
      .input(zero(1))
      .input(Tensor::vector<uint8_t>({6, 6}).reshaped({1, 1, 2}))
      .input(scale(4))
      .input(zero(5))
      .input(scale(2))
      .input(zero(7))
      .input(Tensor::vector<int32_t>({10}))
      .expect(Tensor::vector<uint8_t>({20, 23, 255}).reshaped({1, 1, 3}));
}

}  // namespace onnxtrain::testing
