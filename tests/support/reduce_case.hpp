// Axes, versions and empty sets that the gradients of all Reduce* operators go through.
#pragma once
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

inline void check_reduce_gradients(const char* op) {
  for (int64_t keep : {0, 1}) {
    OpCase(op, 18)
        .input(random_tensor({2, 3, 4}, 0.5, 2))
        .constant(ints({1}))
        .attr("keepdims", keep)
        .check_grad();
    OpCase(op, 18)
        .input(random_tensor({2, 3, 4}, 0.5, 2))
        .input(ints({0, -1}))
        .attr("keepdims", keep)
        .check_grad();
    OpCase(op, 18).input(random_tensor({2, 3}, 0.5, 2)).attr("keepdims", keep).check_grad();
    OpCase(op, 11)
        .input(random_tensor({2, 3}, 0.5, 2))
        .attr("axes", std::vector<int64_t>{1})
        .attr("keepdims", keep)
        .check_grad();
  }
  OpCase(op, 18)
      .input(random_tensor({2, 3}, 0.5, 2))
      .attr("noop_with_empty_axes", int64_t(1))
      .check_grad();
  OpCase(op, 18).input(random_tensor({}, 0.5, 2)).check_grad();
  OpCase(op, 18).input(random_tensor({2, 0}, 0.5, 2)).constant(ints({1})).check_grad();
}

// What the operator makes of nothing.
inline void expect_of_nothing(const char* op, float want) {
  OpCase(op, 20)
      .input(Tensor(DType::kFloat, {2, 0}))
      .constant(ints({1}))
      .expect(floats({want, want}, {2, 1}));
}

}  // namespace onnxtrain::testing
