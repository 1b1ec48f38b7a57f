// Layer, RMS, group, instance, Lp, mean-variance and local response normalisation.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

namespace {
using Axes = std::vector<int64_t>;
}  // namespace

TEST(LayerNormalization, Gradients) {
  auto base = [](Shape x, Shape s, int64_t axis) {
    return OpCase("LayerNormalization", 17)
        .attr("axis", axis)
        .input(random_tensor(x))
        .input(random_tensor(s, 0.5, 2, 2));
  };
  base({3, 4}, {4}, -1).check_grad();
  base({3, 4}, {4}, -1).input(random_tensor({4}, -1, 1, 3)).check_grad();
  base({2, 3, 4}, {3, 4}, 1)
      .input(random_tensor({3, 4}, -1, 1, 3))
      .attr("epsilon", 0.1f)
      .check_grad();
  base({2, 3, 4}, {4}, 1).input(random_tensor({3, 1}, -1, 1, 3)).check_grad();
  base({2, 3, 4}, {3, 1}, 2).input(random_tensor({1}, -1, 1, 3)).check_grad();
  base({2, 3}, {2, 3}, 0).check_grad();
  // Mean and InvStdDev are float whatever the data: wide differences
  base({3, 4}, {4}, -1).input(random_tensor({4}, -1, 1, 3)).outputs(3).check_grad({}, 1e-2, 5e-3);
  base({0, 4}, {4}, -1).check_grad();
}

TEST(RMSNormalization, Gradients) {
  for (int64_t axis : {-1, 1, 0})
    OpCase("RMSNormalization", 23)
        .attr("axis", axis)
        .input(random_tensor({2, 3, 4}))
        .input(random_tensor({4}, 0.5, 2, 2))
        .check_grad();
  OpCase("RMSNormalization", 23)
      .input(random_tensor({40, 5}))
      .input(random_tensor({5}, 0.5, 2, 2))
      .check_grad();
}

TEST(GroupNormalization, Gradients) {
  for (int64_t groups : {1, 2, 4})
    for (int version : {18, 21}) {
      Shape s = {version < 21 ? groups : 4};
      OpCase("GroupNormalization", version)
          .attr("num_groups", groups)
          .input(random_tensor({2, 4, 3}))
          .input(random_tensor(s, 0.5, 2, 2))
          .input(random_tensor(s, -1, 1, 3))
          .check_grad();
    }
}

TEST(InstanceNormalization, Gradients) {
  OpCase("InstanceNormalization", 6)
      .input(random_tensor({2, 3, 2, 3}))
      .input(random_tensor({3}, 0.5, 2, 2))
      .input(random_tensor({3}, -1, 1, 3))
      .check_grad();
}

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
  for (const Axes& axes : {Axes{0}, Axes{1}, Axes{-1}, Axes{0, 2}})
    OpCase("MeanVarianceNormalization", 13)
        .attr("axes", axes)
        .input(random_tensor({3, 3, 4}))
        .check_grad();
}

TEST(LRN, Gradients) {
  for (int64_t size : {1, 2, 3, 9})
    OpCase("LRN", 13)
        .attr("size", size)
        .attr("alpha", 0.5f)
        .attr("beta", 0.6f)
        .attr("bias", 1.5f)
        .input(random_tensor({2, 5, 2}))
        .check_grad();
}

}  // namespace onnxtrain::testing
