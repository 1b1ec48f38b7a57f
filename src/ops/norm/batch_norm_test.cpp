// BatchNormalization and Dropout.
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

TEST(Dropout, MaskAndGradient) {
  Tensor x = random_tensor({50, 40}, 0.5, 1), ratio = Tensor::scalar<float>(0.25f);
  Tensor on = Tensor::scalar<bool>(true), off = Tensor::scalar<bool>(false);
  std::vector<Tensor> r =
      OpCase("Dropout", 13).input(x).constant(ratio).constant(on).outputs(2).run();
  int64_t kept = 0;
  for (int64_t i = 0; i < x.size(); ++i) {
    bool keep = r[1].as<bool>()[i];
    kept += keep;
    ASSERT_NEAR(r[0].as<float>()[i], keep ? x.as<float>()[i] / 0.75f : 0, 1e-6);
  }
  EXPECT_NEAR(double(kept) / 2000, 0.75, 0.04);
  OpCase("Dropout", 13).input(x).constant(ratio).constant(off).expect(x);
  OpCase("Dropout", 13).input(x).expect(x);
  OpCase("Dropout", 10).attr("ratio", 0.5f).input(x).expect(x);
  Tensor s = random_tensor({4, 5});
  OpCase("Dropout", 13).input(s).constant(ratio).constant(on).check_grad({0});
  OpCase("Dropout", 13).input(s).constant(ratio).input(on).check_grad({0});
  OpCase("Dropout", 13).input(s).constant(ratio).input(off).check_grad({0});
  OpCase("Dropout", 13).input(s).constant(ratio).constant(on).outputs(2).check_grad({0});
  OpCase("Dropout", 13).input(s).constant(ratio).check_grad({0});
  OpCase("Dropout", 6).attr("ratio", 0.5f).input(s).check_grad({0});
}

}  // namespace onnxtrain::testing
