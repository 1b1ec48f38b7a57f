// Values and gradients of MaxUnpool.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(MaxUnpool, Gradients) {
  Tensor at = Tensor::vector<int64_t>({5, 7, 13, 15}).reshaped({1, 1, 2, 2});
  OpCase("MaxUnpool", 11)
      .attr("kernel_shape", Ints{2, 2})
      .attr("strides", Ints{2, 2})
      .input(random_tensor({1, 1, 2, 2}))
      .input(at)
      .check_grad();
  OpCase("MaxUnpool", 11)
      .attr("kernel_shape", Ints{2, 2})
      .attr("strides", Ints{2, 2})
      .input(random_tensor({1, 1, 2, 2}))
      .input(at)
      .constant(Tensor::vector<int64_t>({1, 1, 5, 5}))
      .check_grad();
  Tensor bad = Tensor::vector<int64_t>({5, 7, 13, 16}).reshaped({1, 1, 2, 2});
  EXPECT_THROW(OpCase("MaxUnpool", 11)
                   .attr("kernel_shape", Ints{2, 2})
                   .attr("strides", Ints{2, 2})
                   .input(random_tensor({1, 1, 2, 2}))
                   .input(bad)
                   .run(),
               Error);
}

TEST(MaxUnpool, Values) {
  OpCase("MaxUnpool", 11)
      .attr("kernel_shape", Ints{2})
      .attr("strides", Ints{2})
      .input(floats({5, 7}, {1, 1, 2}))
      .input(ints({1, 2}, {1, 1, 2}))
      .expect(floats({0, 5, 7, 0}, {1, 1, 4}));
}

}  // namespace onnxtrain::testing
