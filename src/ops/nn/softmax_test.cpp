// Values and gradients of Softmax, LogSoftmax and Hardmax.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(Softmax, Values) {
  Tensor x = Tensor::vector<float>({0, 0, 1000, 1000}).reshaped({2, 2});
  OpCase("Softmax", 13)
      .input(x)
      .expect(Tensor::vector<float>({.5f, .5f, .5f, .5f}).reshaped({2, 2}));
  OpCase("Softmax", 13)
      .attr("axis", int64_t(0))
      .input(x)
      .expect(Tensor::vector<float>({0, 0, 1, 1}).reshaped({2, 2}));
  OpCase("Softmax", 11)
      .attr("axis", int64_t(0))
      .input(x)
      .expect(Tensor::vector<float>({0, 0, .5f, .5f}).reshaped({2, 2}));
  OpCase("Hardmax", 13)
      .input(Tensor::vector<float>({1, 3, 3, 2}))
      .expect(Tensor::vector<float>({0, 1, 0, 0}));
}

TEST(Softmax, Gradients) {
  for (const char* op : {"Softmax", "LogSoftmax"})
    for (int version : {11, 13})
      for (int64_t axis : {0, 1, 2, -1})
        OpCase(op, version).attr("axis", axis).input(random_tensor({2, 3, 4})).check_grad();
  OpCase("Softmax", 13).input(Tensor(DType::kFloat, {0, 3})).check_grad();
}

TEST(Softmax, Logarithm) {
  const float l = std::log(2.f);
  OpCase("LogSoftmax", 13)
      .input(floats({0, 0, 3, 3}, {2, 2}))
      .expect(floats({-l, -l, -l, -l}, {2, 2}));
  OpCase("Hardmax", 13).input(random_tensor({2, 3})).check_grad();
}

}  // namespace onnxtrain::testing
