// Values and gradients of LpNormalization and MeanVarianceNormalization.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(LpNormalization, ValuesAndGradients) {
  for (int64_t p : {1, 2})
    for (int64_t axis : {0, -1})
      OpCase("LpNormalization", 22)
          .attr("p", p)
          .attr("axis", axis)
          .input(random_tensor({3, 4}, 0.2, 1))
          .check_grad();
  OpCase("LpNormalization", 22)
      .input(Tensor::vector<float>({0, 0, 3, 4}).reshaped({2, 2}))
      .expect(Tensor::vector<float>({0, 0, 0.6f, 0.8f}).reshaped({2, 2}));
}

TEST(MeanVarianceNormalization, Gradients) {
  OpCase("MeanVarianceNormalization", 13).input(random_tensor({2, 3, 2, 2})).check_grad();
  for (const Ints& axes : {Ints{0}, Ints{1}, Ints{-1}, Ints{0, 2}})
    OpCase("MeanVarianceNormalization", 13)
        .attr("axes", axes)
        .input(random_tensor({3, 3, 4}))
        .check_grad();
}

TEST(MeanVarianceNormalization, Values) {
  // mean 4, standard deviation 3
  OpCase("MeanVarianceNormalization", 13)
      .attr("axes", Ints{0})
      .input(floats({1, 7}))
      .expect(floats({-1, 1}), 0, 1e-5, 1e-5);
}

}  // namespace onnxtrain::testing
