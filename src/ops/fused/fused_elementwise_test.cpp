// FusedElementwise: a program of micro-operations against the operators it stands for.
#include <gtest/gtest.h>

#include "kernels/elementwise/elementwise.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(FusedElementwise, AProgram) {
  using simd::MicroOp;
  // step 0 (value 3): a * b; step 1 (value 4): step 0 + c; step 2: relu of it
  const Ints program = {int64_t(MicroOp::kMul),  2, 0, 1, int64_t(MicroOp::kAdd), 2, 3, 2,
                        int64_t(MicroOp::kRelu), 1, 4};
  OpCase("FusedElementwise", 1, std::string(kOwnDomain))
      .attr("program", program)
      .input(floats({1, -2, 3, -4}, {2, 2}))
      .input(floats({2, 3}))
      .input(Tensor::scalar<float>(1))
      .expect(floats({3, 0, 7, 0}, {2, 2}));
}

TEST(FusedElementwise, AttributesOfStepsAndMasks) {
  using simd::MicroOp;
  OpCase("FusedElementwise", 1, std::string(kOwnDomain))
      .attr("program", Ints{int64_t(MicroOp::kLeakyRelu), 1, 0})
      .attr("0.alpha", 0.5f)
      .input(floats({-2, 2}))
      .expect(floats({-1, 2}));
  OpCase("FusedElementwise", 1, std::string(kOwnDomain))
      .attr("program", Ints{int64_t(MicroOp::kLess), 2, 0, 1})
      .attr("to", int64_t(DType::kBool))
      .input(floats({1, 5}))
      .input(floats({2, 2}))
      .expect(bools({1, 0}));
}

}  // namespace onnxtrain::testing
