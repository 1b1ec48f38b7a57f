// Values and gradients of MaxPool and GlobalMaxPool.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"
#include "tests/support/pool_case.hpp"

namespace onnxtrain::testing {

TEST(MaxPool, Gradients) {
  for (const PoolCase& c : pool_cases()) pool_op("MaxPool", 12, c).check_grad();
  OpCase("GlobalMaxPool", 1).input(random_tensor({2, 3, 4, 2})).check_grad();
}

TEST(MaxPool, Indices) {
  Tensor x = Tensor::vector<float>({1, 9, 3, 4, 5, 6, 7, 8, 2}).reshaped({1, 1, 3, 3});
  OpCase o("MaxPool", 12);
  o.attr("kernel_shape", std::vector<int64_t>{2, 2}).input(x).outputs(2);
  o.expect(Tensor::vector<float>({9, 9, 8, 8}).reshaped({1, 1, 2, 2}), 0);
  o.expect(Tensor::vector<int64_t>({1, 1, 7, 7}).reshaped({1, 1, 2, 2}), 1);
  o.attr("storage_order", int64_t(1));
  o.expect(Tensor::vector<int64_t>({3, 3, 5, 5}).reshaped({1, 1, 2, 2}), 1);
}

TEST(MaxPool, WholeImages) {
  OpCase("GlobalMaxPool", 1)
      .input(floats({1, 9, 3, 4, -5, -6, -7, -8}, {1, 2, 2, 2}))
      .expect(floats({9, -5}, {1, 2, 1, 1}));
}

TEST(MaxPool, BadAttributesAreErrors) {
  Tensor x = random_tensor({1, 1, 4, 4});
  EXPECT_THROW(OpCase("MaxPool", 12).input(x).run(), Error);
  EXPECT_THROW(OpCase("MaxPool", 12).attr("kernel_shape", Ints{0, 2}).input(x).run(), Error);
  EXPECT_THROW(OpCase("MaxPool", 12).attr("kernel_shape", Ints{5, 2}).input(x).run(), Error);
}

}  // namespace onnxtrain::testing
