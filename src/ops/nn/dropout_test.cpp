// Dropout: mask, scale and gradient.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

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
