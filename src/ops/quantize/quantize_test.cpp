// QuantizeLinear and DequantizeLinear: rounding, zero points, axes, blocks, small types.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(Quantize, Values) {
  Tensor x = Tensor::vector<float>({0, 2, 3, 1000, -254, -1000}), scale = Tensor::scalar(2.0f),
         zero = Tensor::scalar<uint8_t>(128);
  OpCase("QuantizeLinear", 10)
      .input(x)
      .input(scale)
      .input(zero)
      .expect(Tensor::vector<uint8_t>({128, 129, 130, 255, 1, 0}));
  OpCase("QuantizeLinear", 21)
      .attr("output_dtype", int64_t(DType::kInt8))
      .input(Tensor::vector<float>({0.5f, 1.5f, -2.5f, 300}))
      .input(Tensor::scalar(1.0f))
      .expect(Tensor::vector<int8_t>({0, 2, -2, 127}));
}

TEST(Quantize, ScaleGradients) {
  Tensor x = Tensor::vector<int8_t>({1, -2, 3, 4, -5, 6, 7, 8}).reshaped({2, 4});
  OpCase("DequantizeLinear", 21)
      .input(x)
      .input(random_tensor({}, 0.5, 1))
      .input(Tensor::scalar<int8_t>(2))
      .check_grad({1});
  OpCase("DequantizeLinear", 21)
      .attr("axis", int64_t(1))
      .input(x)
      .input(random_tensor({4}, 0.5, 1))
      .input(Tensor::vector<int8_t>({1, 0, -1, 2}))
      .check_grad({1});
  OpCase("DequantizeLinear", 21)
      .attr("axis", int64_t(1))
      .attr("block_size", int64_t(2))
      .input(x)
      .input(random_tensor({2, 2}, 0.5, 1))
      .check_grad({1});
}

TEST(Quantize, WrongScalesAreErrors) {
  Tensor x = random_tensor({2, 4});
  EXPECT_THROW(OpCase("QuantizeLinear", 21).input(x).input(random_tensor({3})).run(), Error);
  EXPECT_THROW(OpCase("QuantizeLinear", 21)
                   .attr("block_size", int64_t(-1))
                   .input(x)
                   .input(random_tensor({4}))
                   .run(),
               Error);
  EXPECT_THROW(OpCase("QuantizeLinear", 21)
                   .attr("axis", int64_t(5))
                   .input(x)
                   .input(random_tensor({4}))
                   .run(),
               Error);
}

TEST(Quantize, BackToFloat) {
  OpCase("DequantizeLinear", 21)
      .attr("axis", int64_t(1))
      .input(Tensor::vector<int8_t>({1, -2, 3, 4}).reshaped({2, 2}))
      .input(floats({0.5f, 2}))
      .input(Tensor::vector<int8_t>({1, -1}))
      .expect(floats({0, -2, 1, 10}, {2, 2}));
}

}  // namespace onnxtrain::testing
