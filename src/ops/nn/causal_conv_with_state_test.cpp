// CausalConvWithState: gradients of everything, through output and state.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(CausalConvWithState, Gradients) {
  for (const char* activation : {"none", "silu"}) {
    OpCase("CausalConvWithState", 27)
        .attr("activation", std::string(activation))
        .input(random_tensor({2, 3, 5}))
        .input(random_tensor({3, 1, 3}, -1, 1, 2))
        .input(random_tensor({3}, -1, 1, 3))
        .input(random_tensor({2, 3, 2}, -1, 1, 4))
        .outputs(2)
        .check_grad();
    OpCase("CausalConvWithState", 27)
        .attr("activation", std::string(activation))
        .input(random_tensor({1, 2, 4}))
        .input(random_tensor({2, 1, 2}, -1, 1, 2))
        .check_grad();
  }
}

}  // namespace onnxtrain::testing
