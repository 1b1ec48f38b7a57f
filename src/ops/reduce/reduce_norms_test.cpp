// Values and gradients of ReduceL1, ReduceL2, ReduceSumSquare, ReduceLogSum and ReduceLogSumExp.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/reduce_case.hpp"

namespace onnxtrain::testing {

TEST(ReduceNorms, Values) {
  Tensor x = floats({3, -4, 0, 6, 8, 0}, {2, 3});
  auto along = [](const char* op, const Tensor& t) {
    return OpCase(op, 18).attr("keepdims", int64_t(0)).input(t).constant(ints({1}));
  };
  along("ReduceL1", x).expect(floats({7, 14}));
  along("ReduceL2", x).expect(floats({5, 10}));
  along("ReduceSumSquare", x).expect(floats({25, 100}));
  Tensor positive = floats({1, 2, 3, 4, 5, 6}, {2, 3});
  along("ReduceLogSum", positive).expect(floats({std::log(6.f), std::log(15.f)}));
  along("ReduceLogSumExp", floats({1000, 1000, -1000, -1000}, {2, 2}))
      .expect(floats({1000 + std::log(2.f), -1000 + std::log(2.f)}));
  OpCase("ReduceSumSquare", 18)
      .input(positive)
      .attr("noop_with_empty_axes", int64_t(1))
      .expect(Tensor::vector<float>({1, 4, 9, 16, 25, 36}).reshaped({2, 3}));
}

TEST(ReduceNorms, EmptySets) {
  float inf = std::numeric_limits<float>::infinity();
  expect_of_nothing("ReduceL1", 0);
  expect_of_nothing("ReduceL2", 0);
  expect_of_nothing("ReduceSumSquare", 0);
  expect_of_nothing("ReduceLogSum", -inf);
  expect_of_nothing("ReduceLogSumExp", -inf);
}

TEST(ReduceNorms, Gradients) {
  for (const char* op :
       {"ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"})
    check_reduce_gradients(op);
}

}  // namespace onnxtrain::testing
