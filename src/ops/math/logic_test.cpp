// Boolean and bit operators, IsInf, IsNaN, Mod.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(Logic, Values) {
  OpCase("Xor", 7).input(bools({0, 1, 1})).input(bools({1, 1, 0})).expect(bools({1, 0, 1}));
  OpCase("Not", 1).input(bools({0, 1})).expect(bools({1, 0}));
  OpCase("BitShift", 28)
      .attr("direction", std::string("RIGHT"))
      .input(Tensor::vector<int8_t>({-8, 4, -1}))
      .input(Tensor::vector<int8_t>({1, 9, -1}))
      .expect(Tensor::vector<int8_t>({-4, 0, -1}));
  OpCase("BitwiseNot", 18)
      .input(Tensor::vector<uint8_t>({0, 5}))
      .expect(Tensor::vector<uint8_t>({255, 250}));
  OpCase("IsInf", 20)
      .attr("detect_negative", int64_t(0))
      .input(floats({INFINITY, -INFINITY, 1}))
      .expect(bools({1, 0, 0}));
  OpCase("Mod", 13)
      .input(Tensor::vector<int32_t>({-5, 5, INT32_MIN}))
      .input(Tensor::vector<int32_t>({3, -3, -1}))
      .expect(Tensor::vector<int32_t>({1, -1, 0}));
  OpCase("Mod", 13)
      .attr("fmod", int64_t(1))
      .input(floats({-5.5f, 5.5f}))
      .input(floats({3, -3}))
      .expect(floats({-2.5f, 2.5f}));
  for (int64_t fmod : {0, 1})
    OpCase("Mod", 28)
        .attr("fmod", fmod)
        .input(floats({-5.3f, 5.2f, 1.1f}))
        .input(floats({3, -2, 0.4f}))
        .check_grad();
}

TEST(Logic, BooleansAndBits) {
  Tensor a = bools({0, 0, 1, 1}), b = bools({0, 1, 0, 1});
  OpCase("And", 7).input(a).input(b).expect(bools({0, 0, 0, 1}));
  OpCase("Or", 7).input(a).input(b).expect(bools({0, 1, 1, 1}));
  Tensor x = Tensor::vector<int32_t>({12, -1}), y = Tensor::vector<int32_t>({10, 7});
  OpCase("BitwiseAnd", 18).input(x).input(y).expect(Tensor::vector<int32_t>({8, 7}));
  OpCase("BitwiseOr", 18).input(x).input(y).expect(Tensor::vector<int32_t>({14, -1}));
  OpCase("BitwiseXor", 18).input(x).input(y).expect(Tensor::vector<int32_t>({6, -8}));
  OpCase("IsNaN", 20).input(floats({1, NAN, INFINITY})).expect(bools({0, 1, 0}));
  OpCase("BitShift", 11)
      .attr("direction", std::string("LEFT"))
      .input(Tensor::vector<uint8_t>({1, 3}))
      .input(Tensor::vector<uint8_t>({4, 1}))
      .expect(Tensor::vector<uint8_t>({16, 6}));
}

}  // namespace onnxtrain::testing
