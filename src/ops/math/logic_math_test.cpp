// Values and gradients of Cast, comparisons, Pow, Min, Max, Sum, Mean and the makers of constants.
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
  OpCase("CastLike", 15)
      .input(random_tensor({2, 3}))
      .constant(Tensor::scalar<double>(0))
      .check_grad({0});
}

TEST(Compare, Values) {
  Tensor a = Tensor::vector<float>({1, 2, NAN}), b = Tensor::vector<float>({2, 2, NAN});
  OpCase("Equal", 13).input(a).input(b).expect(bools({0, 1, 0}));
  OpCase("Less", 13).input(a).input(b).expect(bools({1, 0, 0}));
  OpCase("Greater", 13).input(a).input(b).expect(bools({0, 0, 0}));
  OpCase("LessOrEqual", 16).input(a).input(b).expect(bools({1, 1, 0}));
  OpCase("GreaterOrEqual", 16).input(a).input(b).expect(bools({0, 1, 0}));
  Tensor s = Tensor::vector<std::string>({"x", "y"});
  OpCase("Equal", 19).input(s).input(Tensor::scalar<std::string>("y")).expect(bools({0, 1}));
  // before opset 7 `axis` says where the second input lies
  OpCase("Greater", 1)
      .attr("broadcast", int64_t(1))
      .attr("axis", int64_t(0))
      .input(Tensor::vector<float>({1, 2, 3, 4}).reshaped({2, 2}))
      .input(Tensor::vector<float>({1, 3}))
      .expect(bools({0, 1, 0, 1}).reshaped({2, 2}));
}

TEST(Arithmetic, LegacyBroadcast) {
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Pow"})
    OpCase(op, 6)
        .attr("broadcast", int64_t(1))
        .attr("axis", int64_t(1))
        .input(random_tensor({2, 3, 4}, 0.5, 2))
        .input(random_tensor({3}, 0.5, 2, 2))
        .check_grad();
}

TEST(Pow, ValuesAndGradient) {
  OpCase("Pow", 15)
      .input(Tensor::vector<int32_t>({2, -3, 5}))
      .input(Tensor::vector<float>({3, 2, 0}))
      .expect(Tensor::vector<int32_t>({8, 9, 1}));
  OpCase("Pow", 15)
      .input(Tensor::vector<float>({2, -3, 4}))
      .input(Tensor::vector<int64_t>({3, 2, -1}))
      .expect(Tensor::vector<float>({8, 9, 0.25}));
  OpCase("Pow", 15)
      .input(Tensor::vector<int64_t>({2, 1, -1}))
      .input(Tensor::vector<int64_t>({-1, -5, -3}))
      .expect(Tensor::vector<int64_t>({0, 1, -1}));
  OpCase("Pow", 15)
      .input(random_tensor({2, 3}, 0.5, 2))
      .input(random_tensor({3}, -2, 2, 2))
      .check_grad();
  for (float k : {0.f, 1.f, 2.f, 3.f, 0.5f, -1.5f})
    OpCase("Pow", 13)
        .input(random_tensor({2, 3}, 0.5, 2))
        .constant(Tensor::scalar<float>(k))
        .check_grad({0});
  OpCase("Pow", 13)
      .input(random_tensor({2, 3}, -2, -0.5))
      .input(Tensor::vector<int64_t>({2, 3, 0}))
      .check_grad({0});
}

TEST(Variadic, ValuesAndGradient) {
  Tensor a = Tensor::vector<float>({1, 5, NAN}), b = Tensor::vector<float>({3, 2, 1});
  OpCase("Max", 13).input(a).input(b).expect(Tensor::vector<float>({3, 5, NAN}));
  OpCase("Min", 13)
      .input(b)
      .input(a)
      .input(Tensor::scalar<float>(0))
      .expect(Tensor::vector<float>({0, 0, NAN}));
  OpCase("Max", 8).input(b).expect(b);
  OpCase("Mean", 13)
      .input(b)
      .input(b)
      .input(Tensor::scalar<float>(3))
      .expect(Tensor::vector<float>({3, 7 / 3.f, 5 / 3.f}));
  for (const char* op : {"Max", "Min", "Sum", "Mean"}) {
    OpCase(op, 13).input(random_tensor({2, 3})).check_grad();
    OpCase(op, 13).input(random_tensor({2, 3})).input(random_tensor({3}, -1, 1, 2)).check_grad();
    OpCase(op, 8)
        .input(random_tensor({3}))
        .input(random_tensor({2, 1}, -1, 1, 2))
        .input(random_tensor({2, 3}, -1, 1, 3))
        .check_grad();
  }
}

TEST(Constants, Values) {
  OpCase("ConstantOfShape", 9)
      .input(Tensor::vector<int64_t>({2, 1}))
      .expect(Tensor::vector<float>({0, 0}).reshaped({2, 1}));
  OpCase("ConstantOfShape", 9)
      .attr("value", Tensor::vector<int32_t>({7}))
      .input(Tensor::vector<int64_t>({}))
      .expect(Tensor::scalar<int32_t>(7));
  OpCase("EyeLike", 22)
      .attr("k", int64_t(1))
      .input(random_tensor({2, 3}))
      .expect(Tensor::vector<float>({0, 1, 0, 0, 0, 1}).reshaped({2, 3}));
  OpCase("Range", 11)
      .input(Tensor::scalar<int32_t>(10))
      .input(Tensor::scalar<int32_t>(6))
      .input(Tensor::scalar<int32_t>(-3))
      .expect(Tensor::vector<int32_t>({10, 7}));
  OpCase("Range", 11)
      .input(Tensor::scalar<float>(1))
      .input(Tensor::scalar<float>(5))
      .input(Tensor::scalar<float>(2))
      .expect(Tensor::vector<float>({1, 3}));
  OpCase("Constant", 13)
      .attr("value_ints", std::vector<int64_t>{4, 5})
      .expect(Tensor::vector<int64_t>({4, 5}));
  EXPECT_THROW(OpCase("ConstantOfShape", 9).input(Tensor::vector<int64_t>({-2})).run(), Error);
}

}  // namespace onnxtrain::testing
