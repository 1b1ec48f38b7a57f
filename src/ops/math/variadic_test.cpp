// Values and gradients of Max, Min, Sum and Mean.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

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

TEST(Variadic, SumOfSeveralShapes) {
  OpCase("Sum", 13)
      .input(floats({1, 2}))
      .input(floats({10, 20}, {2, 1}))
      .input(Tensor::scalar<float>(100))
      .expect(floats({111, 112, 121, 122}, {2, 2}));
}

}  // namespace onnxtrain::testing
