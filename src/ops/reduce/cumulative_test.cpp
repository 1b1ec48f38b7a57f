// Values and gradients of CumSum and CumProd.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(Cumulative, ValuesAndGradients) {
  Tensor x = Tensor::vector<float>({1, 2, 3}), axis = Tensor::scalar<int64_t>(0);
  OpCase("CumSum", 14).input(x).constant(axis).expect(Tensor::vector<float>({1, 3, 6}));
  OpCase("CumSum", 14)
      .attr("exclusive", int64_t(1))
      .attr("reverse", int64_t(1))
      .input(x)
      .input(axis)
      .expect(Tensor::vector<float>({5, 3, 0}));
  for (const char* op : {"CumSum", "CumProd"})
    for (int64_t exclusive : {0, 1})
      for (int64_t reverse : {0, 1})
        for (int64_t a : {0, -1}) {
          OpCase(op, 26)
              .attr("exclusive", exclusive)
              .attr("reverse", reverse)
              .input(random_tensor({3, 4}, 0.5, 2))
              .constant(Tensor::scalar<int64_t>(a))
              .check_grad();
          OpCase(op, 26)
              .attr("exclusive", exclusive)
              .attr("reverse", reverse)
              .input(Tensor::vector<float>({2, 0, 3, 0, 5, 1, 2, 0, 4}).reshaped({3, 3}))
              .constant(Tensor::scalar<int32_t>(int32_t(a)))
              .check_grad();
        }
}

TEST(Cumulative, Products) {
  Tensor x = floats({1, 2, 3, 4}), axis = Tensor::scalar<int64_t>(0);
  OpCase("CumProd", 26).input(x).constant(axis).expect(floats({1, 2, 6, 24}));
  OpCase("CumProd", 26)
      .attr("exclusive", int64_t(1))
      .attr("reverse", int64_t(1))
      .input(x)
      .constant(axis)
      .expect(floats({24, 12, 4, 1}));
}

}  // namespace onnxtrain::testing
