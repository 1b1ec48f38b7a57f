// Values and gradients of AveragePool and GlobalAveragePool.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"
#include "tests/support/pool_case.hpp"

namespace onnxtrain::testing {

TEST(AveragePool, Gradients) {
  for (const PoolCase& c : pool_cases())
    for (int64_t include : {0, 1})
      pool_op("AveragePool", 19, c).attr("count_include_pad", include).check_grad();
  OpCase("GlobalAveragePool", 1).input(random_tensor({2, 3, 4, 2})).check_grad();
}

TEST(AveragePool, Values) {
  Tensor x = floats({1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 1, 3, 3});
  OpCase("AveragePool", 19)
      .attr("kernel_shape", Ints{2, 2})
      .input(x)
      .expect(floats({3, 4, 6, 7}, {1, 1, 2, 2}));
  auto padded = [&](int64_t include) {
    return OpCase("AveragePool", 19)
        .attr("kernel_shape", Ints{2, 2})
        .attr("strides", Ints{2, 2})
        .attr("pads", Ints{1, 1, 0, 0})
        .attr("count_include_pad", include)
        .input(x);
  };
  padded(0).expect(floats({1, 2.5f, 5.5f, 7}, {1, 1, 2, 2}));
  padded(1).expect(floats({0.25f, 1.25f, 2.75f, 7}, {1, 1, 2, 2}));
  OpCase("GlobalAveragePool", 1).input(x).expect(floats({5}, {1, 1, 1, 1}));
  EXPECT_THROW(OpCase("AveragePool", 12).attr("kernel_shape", Ints{2}).input(x).run(), Error);
}

}  // namespace onnxtrain::testing
