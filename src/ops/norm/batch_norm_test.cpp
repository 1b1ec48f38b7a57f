// Values and gradients of BatchNormalization.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

namespace {
OpCase bn(int version, const Shape& x, const Shape& c) {
  OpCase o("BatchNormalization", version);
  o.input(random_tensor(x)).input(random_tensor(c, 0.5, 2, 2)).input(random_tensor(c, -1, 1, 3));
  o.input(random_tensor(c, -1, 1, 4)).input(random_tensor(c, 0.5, 2, 5));
  return o;
}
}  // namespace

TEST(BatchNormalization, Gradients) {
  for (Shape x : {Shape{4, 3}, Shape{3, 2, 4}, Shape{2, 2, 3, 4}}) {
    Shape c = {x[1]};
    bn(9, x, c).check_grad();
    bn(15, x, c).check_grad();
    bn(15, x, c).attr("training_mode", int64_t(1)).check_grad();
    bn(15, x, c)
        .attr("training_mode", int64_t(1))
        .attr("epsilon", 0.1f)
        .attr("momentum", 0.3f)
        .outputs(3)
        .check_grad();
    bn(9, x, c).outputs(5).check_grad();
  }
  bn(7, {4, 2, 3}, {2, 3}).attr("spatial", int64_t(0)).check_grad();
  bn(7, {4, 2, 3}, {2, 3}).attr("spatial", int64_t(0)).outputs(3).check_grad();
  bn(1, {4, 2, 3}, {2}).attr("is_test", int64_t(1)).check_grad();
}

TEST(BatchNormalization, Training) {
  Tensor x = Tensor::vector<float>({1, 3, 5, 11}).reshaped({4, 1}),
         one = Tensor::vector<float>({1}), zero = Tensor::vector<float>({0});
  OpCase o("BatchNormalization", 15);
  o.attr("training_mode", int64_t(1)).attr("epsilon", 0.0f).outputs(3);
  o.input(x).input(one).input(zero).input(one).input(one);
  o.expect(Tensor::vector<float>({1 * 0.9f + 5 * 0.1f}), 1)
      .expect(Tensor::vector<float>({0.9f + 14 * 0.1f}), 2);
}

TEST(BatchNormalization, Inference) {
  OpCase("BatchNormalization", 15)
      .attr("epsilon", 0.0f)
      .input(floats({1, 2, 3, 4}, {1, 2, 2}))
      .input(floats({2, 1}))
      .input(floats({10, 20}))
      .input(floats({1, 3}))
      .input(floats({4, 0.25f}))
      .expect(floats({10, 11, 20, 22}, {1, 2, 2}));
}

}  // namespace onnxtrain::testing
