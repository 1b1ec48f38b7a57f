// Values and gradients of Add, Sub, Mul, Div and Neg.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(Arithmetic, ValuesAndBroadcast) {
  Tensor a = Tensor::vector<float>({1, 2, 3}).reshaped({3, 1}), b = Tensor::vector<float>({10, 20});
  OpCase("Add", 14).input(a).input(b).expect(
      Tensor::vector<float>({11, 21, 12, 22, 13, 23}).reshaped({3, 2}));
  OpCase("Div", 14).input(b).input(a).expect(
      Tensor::vector<float>({10, 20, 5, 10, 10 / 3.f, 20 / 3.f}).reshaped({3, 2}));
}

TEST(Arithmetic, Gradients) {
  for (const char* op : {"Add", "Sub", "Mul", "Div"}) {
    OpCase(op, 14)
        .input(random_tensor({2, 3}, 0.5, 2))
        .input(random_tensor({2, 3}, 0.5, 2, 2))
        .check_grad();
    OpCase(op, 14)
        .input(random_tensor({2, 1, 4}, 0.5, 2))
        .input(random_tensor({3, 1}, 0.5, 2, 2))
        .check_grad();
    OpCase(op, 14)
        .input(random_tensor({}, 0.5, 2))
        .input(random_tensor({2, 0}, 0.5, 2, 2))
        .check_grad();
  }
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

TEST(Arithmetic, SubMulNeg) {
  Tensor a = floats({1, 2, 3}), b = floats({10, 20, 30});
  OpCase("Sub", 14).input(b).input(a).expect(floats({9, 18, 27}));
  OpCase("Mul", 14).input(a).input(b).expect(floats({10, 40, 90}));
  OpCase("Neg", 13).input(a).expect(floats({-1, -2, -3}));
  OpCase("Neg", 13)
      .input(Tensor::vector<int32_t>({5, -7}))
      .expect(Tensor::vector<int32_t>({-5, 7}));
  OpCase("Neg", 13).input(random_tensor({2, 3})).check_grad();
  OpCase("Div", 14).input(ints({7, -7, 9})).input(ints({2, 2, -3})).expect(ints({3, -3, -3}));
}

}  // namespace onnxtrain::testing
