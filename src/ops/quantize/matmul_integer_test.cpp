// Values of the products of quantised matrices and of DynamicQuantizeLinear.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(MatMulInteger, Values) {
  Tensor a = Tensor::vector<uint8_t>({11, 7, 3, 10, 6, 2}).reshaped({2, 3}),
         b = Tensor::vector<uint8_t>({1, 4, 2, 5, 3, 6}).reshaped({3, 2});
  OpCase("MatMulInteger", 10)
      .input(a)
      .input(b)
      .input(Tensor::vector<uint8_t>({12}))
      .input(Tensor::vector<uint8_t>({0}))
      .expect(Tensor::vector<int32_t>({-38, -83, -44, -98}).reshaped({2, 2}));
}

TEST(QLinearMatMul, Values) {
  // (a - 1) * 0.5 times (b - 2) * 2, divided by 0.25, plus 10
  auto scale = [](float v) { return Tensor::scalar<float>(v); };
  auto zero = [](uint8_t v) { return Tensor::scalar<uint8_t>(v); };
  OpCase("QLinearMatMul", 21)
      .input(Tensor::vector<uint8_t>({3, 5}).reshaped({1, 2}))
      .input(scale(0.5f))
      .input(zero(1))
      .input(Tensor::vector<uint8_t>({3, 4, 2, 5}).reshaped({2, 2}))
      .input(scale(2))
      .input(zero(2))
      .input(scale(0.25f))
      .input(zero(10))
      .expect(Tensor::vector<uint8_t>({18, 74}).reshaped({1, 2}));
}

TEST(DynamicQuantizeLinear, Values) {
  // from -1 to 1.55: 255 steps of 0.01, zero at 100
  OpCase("DynamicQuantizeLinear", 11)
      .outputs(3)
      .input(floats({-1, 0, 0.5f, 1.55f}))
      .expect(Tensor::vector<uint8_t>({0, 100, 150, 255}), 0)
      .expect(Tensor::scalar<float>(0.01f), 1)
      .expect(Tensor::scalar<uint8_t>(100), 2);
}

}  // namespace onnxtrain::testing
