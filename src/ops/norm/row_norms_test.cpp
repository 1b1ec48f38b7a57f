// Values and gradients of layer, RMS, group and instance normalisation.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(LayerNormalization, Gradients) {
  auto base = [](const Shape& x, const Shape& s, int64_t axis) {
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

TEST(RowNorms, Values) {
  Tensor x = floats({1, 3, 10, 14}, {2, 2}), scale = floats({2, 3}), bias = floats({10, 20});
  OpCase("LayerNormalization", 17)
      .attr("epsilon", 0.0f)
      .input(x)
      .input(scale)
      .input(bias)
      .expect(floats({8, 23, 8, 23}, {2, 2}));
  // root of the mean square of 3 and 4: sqrt(12.5)
  const float root = std::sqrt(12.5f);
  OpCase("RMSNormalization", 23)
      .attr("epsilon", 0.0f)
      .input(floats({3, 4}, {1, 2}))
      .input(floats({1, 2}))
      .expect(floats({3 / root, 8 / root}, {1, 2}));
  Tensor images = floats({1, 3, 10, 14}, {1, 2, 2});
  OpCase("InstanceNormalization", 6)
      .attr("epsilon", 0.0f)
      .input(images)
      .input(scale)
      .input(bias)
      .expect(floats({8, 12, 17, 23}, {1, 2, 2}));
  OpCase("GroupNormalization", 21)
      .attr("epsilon", 0.0f)
      .attr("num_groups", int64_t(2))
      .input(images)
      .input(scale)
      .input(bias)
      .expect(floats({8, 12, 17, 23}, {1, 2, 2}));
}

TEST(RowNorms, GradientOperator) {
  // the same gradient everywhere moves the mean only: nothing of it reaches x
  OpCase("RowNormGrad", 1, std::string(kOwnDomain))
      .attr("kind", std::string("LayerNormalization"))
      .attr("opset", int64_t(17))
      .attr("epsilon", 0.0f)
      .outputs(3)
      .input(floats({1, 1, 1, 1}, {2, 2}))
      .input(floats({1, 3, 10, 14}, {2, 2}))
      .input(floats({1, 1}))
      .expect(floats({0, 0, 0, 0}, {2, 2}), 0)
      .expect(floats({-2, 2}), 1)
      .expect(floats({2, 2}), 2);
}

}  // namespace onnxtrain::testing
