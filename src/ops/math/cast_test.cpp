// Values and gradients of Cast, CastLike and BitCast.
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

static OpCase cast(Tensor x, DType to) {
  OpCase c("Cast", 24);
  c.attr("to", int64_t(to)).input(std::move(x));
  return c;
}

TEST(Cast, Values) {
  Tensor f = Tensor::vector<float>({1.5f, -2.75f, 0, 300});
  cast(f, DType::kInt32).expect(Tensor::vector<int32_t>({1, -2, 0, 300}));
  cast(f, DType::kBool).expect(bools({1, 1, 0, 1}));
  cast(f, DType::kUint8).expect(Tensor::vector<uint8_t>({1, 254, 0, 44}));
  cast(f, DType::kFloat8E4M3FN)
      .attr("saturate", int64_t(1))
      .expect(Tensor::vector<Float8E4M3FN>(
          {Float8E4M3FN(1.5f), Float8E4M3FN(-2.75f), Float8E4M3FN(0.f), Float8E4M3FN(288.f)}));
  cast(f, DType::kInt4).expect(Tensor::vector<Int4>({Int4(1), Int4(-2), Int4(0), Int4(-4)}));
  cast(f, DType::kString).expect(Tensor::vector<std::string>({"1.5", "-2.75", "0", "300"}));
  cast(Tensor::vector<std::string>({" 3.25", "-INF", "nan", "1e-5", "+7"}), DType::kFloat)
      .expect(Tensor::vector<float>({3.25f, -INFINITY, NAN, 1e-5f, 7}));
  cast(Tensor::vector<std::string>({"100.5", "-3"}), DType::kInt64)
      .expect(Tensor::vector<int64_t>({100, -3}));
  cast(Tensor::vector<double>({1.00048828125 + 1e-12}), DType::kFloat16)
      .expect(Tensor::vector<Half>({Half(1.0009765625f)}), 0, 0, 0);
  EXPECT_THROW(cast(Tensor::vector<std::string>({"1.5x"}), DType::kFloat).run(), Error);
  EXPECT_THROW(cast(f, DType::kComplex64).run(), Error);
  OpCase("Cast", 1)
      .attr("to", std::string("INT64"))
      .input(f)
      .expect(Tensor::vector<int64_t>({1, -2, 0, 300}));
}

TEST(Cast, Gradient) {
  OpCase("Cast", 13).attr("to", int64_t(DType::kDouble)).input(random_tensor({2, 3})).check_grad();
  OpCase("Cast", 1).attr("to", std::string("DOUBLE")).input(random_tensor({2, 3})).check_grad();
  OpCase("CastLike", 15)
      .input(random_tensor({2, 3}))
      .constant(Tensor::scalar<double>(0))
      .check_grad({0});
}

TEST(Cast, LikeAnotherTensor) {
  OpCase("CastLike", 15)
      .input(floats({1.5f, -2.5f}))
      .input(Tensor::scalar<int64_t>(0))
      .expect(ints({1, -2}));
}

TEST(BitCast, Values) {
  OpCase("BitCast", 26)
      .attr("to", int64_t(DType::kInt32))
      .input(floats({1, -2, 0}))
      .expect(Tensor::vector<int32_t>({0x3f800000, int32_t(0xc0000000), 0}));
  OpCase("BitCast", 26)
      .attr("to", int64_t(DType::kUint8))
      .input(Tensor::vector<int8_t>({-1, 5}))
      .expect(Tensor::vector<uint8_t>({255, 5}));
  EXPECT_THROW(OpCase("BitCast", 26).attr("to", int64_t(DType::kInt64)).input(floats({1})).run(),
               Error);
}

}  // namespace onnxtrain::testing
