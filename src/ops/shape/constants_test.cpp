// Values of Constant, ConstantOfShape, EyeLike and Range.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(Constants, Values) {
  OpCase("ConstantOfShape", 9)
      .input(Tensor::vector<int64_t>({2, 1}))
      .expect(Tensor::vector<float>({0, 0}).reshaped({2, 1}));
  OpCase("ConstantOfShape", 9)
      .attr("value", Tensor::vector<int32_t>({7}))
      .input(Tensor::vector<int64_t>({}))
      .expect(Tensor::scalar<int32_t>(7));
  OpCase("EyeLike", 22)
      .attr("k", int64_t(1))
      .input(random_tensor({2, 3}))
      .expect(Tensor::vector<float>({0, 1, 0, 0, 0, 1}).reshaped({2, 3}));
  OpCase("Range", 11)
      .input(Tensor::scalar<int32_t>(10))
      .input(Tensor::scalar<int32_t>(6))
      .input(Tensor::scalar<int32_t>(-3))
      .expect(Tensor::vector<int32_t>({10, 7}));
  OpCase("Range", 11)
      .input(Tensor::scalar<float>(1))
      .input(Tensor::scalar<float>(5))
      .input(Tensor::scalar<float>(2))
      .expect(Tensor::vector<float>({1, 3}));
  OpCase("Constant", 13)
      .attr("value_ints", std::vector<int64_t>{4, 5})
      .expect(Tensor::vector<int64_t>({4, 5}));
  EXPECT_THROW(OpCase("ConstantOfShape", 9).input(Tensor::vector<int64_t>({-2})).run(), Error);
}

}  // namespace onnxtrain::testing
