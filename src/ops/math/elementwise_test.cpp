// Values and gradients of the element-wise operators.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(UnaryMath, Gradients) {
  struct {
    const char* op;
    double low, high;
  } cases[] = {{"Exp", -1, 1},      {"Log", 0.5, 2},  {"Sqrt", 0.5, 2},  {"Reciprocal", 0.5, 2},
               {"Sin", -1, 1},      {"Cos", -1, 1},   {"Tan", -1, 1},    {"Asin", -0.8, 0.8},
               {"Acos", -0.8, 0.8}, {"Atan", -1, 1},  {"Sinh", -1, 1},   {"Cosh", -1, 1},
               {"Tanh", -1, 1},     {"Asinh", -1, 1}, {"Acosh", 1.5, 3}, {"Atanh", -0.8, 0.8},
               {"Erf", -1, 1}};
  for (const auto& c : cases)
    OpCase(c.op, 22).input(random_tensor({2, 3}, c.low, c.high)).check_grad();
}

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

TEST(Views, Values) {
  Tensor x = random_tensor({2, 3, 4});
  OpCase("Reshape", 14)
      .input(x)
      .constant(Tensor::vector<int64_t>({0, -1}))
      .expect(x.reshaped({2, 12}));
  OpCase("Reshape", 14).input(x).input(Tensor::vector<int64_t>({4, -1})).expect(x.reshaped({4, 6}));
  OpCase("Flatten", 13).attr("axis", int64_t(2)).input(x).expect(x.reshaped({6, 4}));
  OpCase("Shape", 15).input(x).expect(Tensor::vector<int64_t>({2, 3, 4}));
  OpCase("Reshape", 14).input(x).constant(Tensor::vector<int64_t>({4, 6})).check_grad();
  OpCase("Unsqueeze", 13).input(x).constant(Tensor::vector<int64_t>({0, -1})).check_grad();
}

}  // namespace onnxtrain::testing
