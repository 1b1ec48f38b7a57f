// Values and gradients of Slice.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(Slice, Values) {
  Tensor x = random_tensor({3, 4, 5});
  const float* p = x.as<float>();
  std::vector<float> back;
  for (int64_t i = 4; i-- > 0;) back.push_back(p[20 + i * 5 + 1]);
  OpCase("Slice", 13)
      .input(x)
      .constant(ints({1, -1, 1}))
      .constant(ints({2, -100, 2}))
      .constant(ints({0, 1, 2}))
      .constant(ints({1, -1, 1}))
      .expect(Tensor::vector<float>(back).reshaped({1, 4, 1}));
  OpCase("Slice", 1)
      .attr("starts", Ints{1})
      .attr("ends", Ints{1000})
      .attr("axes", Ints{2})
      .input(Tensor::vector<float>({1, 2, 3}).reshaped({1, 1, 3}))
      .expect(Tensor::vector<float>({2, 3}).reshaped({1, 1, 2}));
  OpCase("Slice", 10)
      .input(Tensor::vector<int64_t>({1, 2, 3}))
      .input(ints({INT64_MAX}))
      .input(ints({INT64_MIN}))
      .skip_input()
      .input(ints({INT64_MIN}))
      .expect(Tensor::vector<int64_t>({3}));
  EXPECT_THROW(OpCase("Slice", 13)
                   .input(x)
                   .constant(ints({0}))
                   .constant(ints({1}))
                   .constant(ints({0}))
                   .constant(ints({0}))
                   .run(),
               Error);
}

TEST(Slice, Gradient) {
  OpCase("Slice", 13)
      .input(random_tensor({4, 5}))
      .constant(ints({1}))
      .constant(ints({3}))
      .check_grad({0});
  OpCase("Slice", 13)
      .input(random_tensor({4, 5}))
      .constant(ints({-1, 0}))
      .constant(ints({-9, 5}))
      .constant(ints({0, 1}))
      .constant(ints({-2, 3}))
      .check_grad({0});
  OpCase("Slice", 1)
      .attr("starts", Ints{1})
      .attr("ends", Ints{3})
      .attr("axes", Ints{1})
      .input(random_tensor({2, 5}))
      .check_grad();
  OpCase("Slice", 13)
      .input(random_tensor({4, 5}))
      .input(ints({2}))
      .input(ints({2}))
      .check_grad({0});
}

}  // namespace onnxtrain::testing
