// StridedMatMul: permutations, factor, bias, residual and activation on the way.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

namespace {
OpCase strided() { return OpCase("StridedMatMul", 1, std::string(kOwnDomain)); }
}  // namespace

TEST(StridedMatMul, FactorBiasResidualActivation) {
  Tensor a = floats({1, 2, 3, 4}, {2, 2}), b = floats({1, 0, 0, -1}, {2, 2});
  strided().attr("alpha", 2.0f).input(a).input(b).expect(floats({2, -4, 6, -8}, {2, 2}));
  strided()
      .attr("act", std::string("Relu"))
      .input(a)
      .input(b)
      .input(floats({10, 1}))
      .input(floats({0, 0, 0, 5}, {2, 2}))
      .expect(floats({11, 0, 13, 2}, {2, 2}));
}

TEST(StridedMatMul, PermutedOperands) {
  Tensor a = random_tensor({2, 3, 4}), b = random_tensor({2, 3, 5}, -1, 1, 2);
  // [2, 4, 3] x [2, 3, 5]
  Tensor turned = OpCase("Transpose", 13).attr("perm", Ints{0, 2, 1}).input(a).run()[0];
  Tensor want = OpCase("MatMul", 13).input(turned).input(b).run()[0];
  strided().attr("permA", Ints{0, 2, 1}).input(a).input(b).expect(want);
  EXPECT_THROW(strided().attr("permA", Ints{0, 1, 1}).input(a).input(b).run(), Error);
}

}  // namespace onnxtrain::testing
