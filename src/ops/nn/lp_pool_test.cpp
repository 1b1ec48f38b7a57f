// Values and gradients of LpPool and GlobalLpPool.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"
#include "tests/support/pool_case.hpp"

namespace onnxtrain::testing {

TEST(LpPool, Gradients) {
  for (const PoolCase& c : pool_cases())
    for (int64_t p : {1, 2, 3}) pool_op("LpPool", 18, c).attr("p", p).check_grad();
  OpCase("GlobalLpPool", 2).attr("p", int64_t(3)).input(random_tensor({2, 3, 4, 2})).check_grad();
}

TEST(LpPool, Values) {
  Tensor x = floats({3, -4, 0, 6, 8, 1}, {1, 1, 6});
  OpCase("LpPool", 18)
      .attr("kernel_shape", Ints{2})
      .attr("strides", Ints{3})
      .input(x)
      .expect(floats({5, 10}, {1, 1, 2}));
  OpCase("GlobalLpPool", 2).attr("p", int64_t(1)).input(x).expect(floats({22}, {1, 1, 1}));
  EXPECT_THROW(
      OpCase("LpPool", 12).attr("kernel_shape", Ints{2}).attr("p", int64_t(0)).input(x).run(),
      Error);
}

}  // namespace onnxtrain::testing
