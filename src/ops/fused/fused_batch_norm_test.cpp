// FusedBatchNorm and its gradient against the operators they stand for.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

namespace {

struct NormOperands {
  Tensor x = random_tensor({6, 4}), scale = random_tensor({4}, 0.5, 2, 2),
         bias = random_tensor({4}, -1, 1, 3), mean = random_tensor({4}, -1, 1, 4),
         var = random_tensor({4}, 0.5, 2, 5), z = random_tensor({6, 4}, -1, 1, 6);
};

Tensor element(const Tensor& t, int64_t rows, int64_t columns) {
  return t.reshaped({rows, columns});
}

}  // namespace

TEST(FusedBatchNorm, NormAdditionAndRelu) {
  NormOperands o;
  std::vector<Tensor> plain = OpCase("BatchNormalization", 15)
                                  .attr("training_mode", int64_t(1))
                                  .outputs(3)
                                  .input(o.x)
                                  .input(o.scale)
                                  .input(o.bias)
                                  .input(o.mean)
                                  .input(o.var)
                                  .run();
  Tensor sum = OpCase("Add", 14).input(plain[0]).input(o.z).run()[0];
  Tensor want = OpCase("Relu", 14).input(sum).run()[0];
  OpCase fused("FusedBatchNorm", 1, std::string(kOwnDomain));
  fused.attr("act", std::string("Relu")).outputs(5);
  fused.input(o.x).input(o.scale).input(o.bias).input(o.mean).input(o.var).input(o.z);
  fused.expect(element(want, 6, 4), 0).expect(plain[1], 1).expect(plain[2], 2);
}

TEST(FusedBatchNorm, GradientIsThatOfTheChain) {
  NormOperands o;
  Tensor dy = random_tensor({6, 4}, -1, 1, 7);
  OpCase forward("FusedBatchNorm", 1, std::string(kOwnDomain));
  forward.outputs(5).input(o.x).input(o.scale).input(o.bias).input(o.mean).input(o.var);
  std::vector<Tensor> y = forward.run();
  std::vector<Tensor> plain = OpCase("BatchNormalizationGrad", 1, std::string(kOwnDomain))
                                  .outputs(3)
                                  .input(dy)
                                  .input(o.x)
                                  .input(o.scale)
                                  .run();
  OpCase fused("FusedBatchNormGrad", 1, std::string(kOwnDomain));
  fused.outputs(3).input(dy).input(o.x).input(o.scale).input(o.bias).input(y[3]).input(y[4]);
  for (int k = 0; k < 3; ++k) fused.expect(plain[size_t(k)], k, 1e-4, 1e-5);
}

}  // namespace onnxtrain::testing
