// Pools: values and gradients.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

namespace {
struct PoolCase {
  Shape x;
  std::vector<int64_t> kernel, strides, dilations, pads;
  int64_t ceil_mode = 0;
  const char* auto_pad = nullptr;
};
std::vector<PoolCase> pool_cases() {
  return {{{2, 2, 7}, {3}, {2}, {}, {1, 1}, 0, nullptr},
          {{1, 2, 5, 6}, {2, 3}, {1, 2}, {}, {0, 1, 1, 0}, 0, nullptr},
          {{1, 2, 6, 6}, {3, 3}, {2, 2}, {}, {}, 1, nullptr},
          {{1, 1, 7, 7}, {2, 2}, {2, 1}, {2, 3}, {1, 1, 1, 1}, 0, nullptr},
          {{1, 1, 5, 5}, {3, 3}, {2, 2}, {}, {}, 0, "SAME_UPPER"},
          {{1, 1, 6, 5}, {2, 3}, {2, 2}, {}, {}, 0, "SAME_LOWER"},
          {{1, 2, 3, 4, 3}, {2, 2, 2}, {1, 1, 2}, {}, {}, 0, nullptr}};
}
OpCase pool(const char* op, int version, const PoolCase& c) {
  OpCase o(op, version);
  o.attr("kernel_shape", c.kernel);
  if (!c.strides.empty()) o.attr("strides", c.strides);
  if (!c.dilations.empty()) o.attr("dilations", c.dilations);
  if (!c.pads.empty()) o.attr("pads", c.pads);
  if (c.ceil_mode) o.attr("ceil_mode", c.ceil_mode);
  if (c.auto_pad) o.attr("auto_pad", std::string(c.auto_pad));
  return o.input(random_tensor(c.x));
}
}  // namespace

TEST(MaxPool, Gradients) {
  for (const PoolCase& c : pool_cases()) pool("MaxPool", 12, c).check_grad();
  OpCase("GlobalMaxPool", 1).input(random_tensor({2, 3, 4, 2})).check_grad();
}
TEST(AveragePool, Gradients) {
  for (const PoolCase& c : pool_cases())
    for (int64_t include : {0, 1})
      pool("AveragePool", 19, c).attr("count_include_pad", include).check_grad();
  OpCase("GlobalAveragePool", 1).input(random_tensor({2, 3, 4, 2})).check_grad();
}
TEST(LpPool, Gradients) {
  for (const PoolCase& c : pool_cases())
    for (int64_t p : {1, 2, 3}) pool("LpPool", 18, c).attr("p", p).check_grad();
  OpCase("GlobalLpPool", 2).attr("p", int64_t(3)).input(random_tensor({2, 3, 4, 2})).check_grad();
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

TEST(Pool, BadAttributesAreErrors) {
  Tensor x = random_tensor({1, 1, 4, 4});
  EXPECT_THROW(OpCase("MaxPool", 12).input(x).run(), Error);
  EXPECT_THROW(
      OpCase("MaxPool", 12).attr("kernel_shape", std::vector<int64_t>{0, 2}).input(x).run(), Error);
  EXPECT_THROW(
      OpCase("MaxPool", 12).attr("kernel_shape", std::vector<int64_t>{5, 2}).input(x).run(), Error);
  EXPECT_THROW(
      OpCase("AveragePool", 12).attr("kernel_shape", std::vector<int64_t>{2}).input(x).run(),
      Error);
  EXPECT_THROW(OpCase("LpPool", 12)
                   .attr("kernel_shape", std::vector<int64_t>{2, 2})
                   .attr("p", int64_t(0))
                   .input(x)
                   .run(),
               Error);
}

}  // namespace onnxtrain::testing
