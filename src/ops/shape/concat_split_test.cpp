// Values and gradients of Concat and Split.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(Concat, ValuesAndGradient) {
  Tensor a = Tensor::vector<float>({1, 2, 3, 4}).reshaped({2, 2}),
         b = Tensor::vector<float>({5, 6}).reshaped({2, 1});
  OpCase("Concat", 13)
      .attr("axis", int64_t(1))
      .input(a)
      .input(b)
      .expect(Tensor::vector<float>({1, 2, 5, 3, 4, 6}).reshaped({2, 3}));
  OpCase("Concat", 13)
      .attr("axis", int64_t(-1))
      .input(random_tensor({2, 3, 1}))
      .input(random_tensor({2, 3, 4}, -1, 1, 2))
      .input(random_tensor({2, 3, 0}))
      .check_grad();
  OpCase("Concat", 4)
      .attr("axis", int64_t(0))
      .input(random_tensor({2, 3}))
      .input(random_tensor({1, 3}, -1, 1, 2))
      .check_grad();
  EXPECT_THROW(OpCase("Concat", 13).attr("axis", int64_t(0)).input(a).input(b).run(), Error);
}

TEST(Split, ValuesAndGradient) {
  Tensor x = Tensor::vector<float>({1, 2, 3, 4, 5, 6, 7});
  OpCase("Split", 18)
      .attr("num_outputs", int64_t(3))
      .input(x)
      .outputs(3)
      .expect(Tensor::vector<float>({7}), 2);
  OpCase("Split", 13)
      .input(x)
      .constant(ints({2, 5}))
      .outputs(2)
      .expect(Tensor::vector<float>({3, 4, 5, 6, 7}), 1);
  OpCase("Split", 13).input(x).input(ints({0, 7})).outputs(2).expect(x, 1);
  OpCase("Split", 2)
      .attr("split", Ints{3, 4})
      .input(x)
      .outputs(2)
      .expect(Tensor::vector<float>({1, 2, 3}), 0);
  OpCase("Split", 18)
      .attr("axis", int64_t(1))
      .attr("num_outputs", int64_t(2))
      .input(random_tensor({2, 4}))
      .outputs(2)
      .check_grad();
  OpCase("Split", 13)
      .attr("axis", int64_t(-1))
      .input(random_tensor({2, 5}))
      .constant(ints({1, 4}))
      .outputs(2)
      .check_grad();
  EXPECT_THROW(OpCase("Split", 13).input(x).constant(ints({2, 4})).outputs(2).run(), Error);
}

}  // namespace onnxtrain::testing
