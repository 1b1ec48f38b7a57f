// Values and gradients of Col2Im and of Im2Col, its gradient.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(Col2Im, Gradients) {
  OpCase("Col2Im", 18)
      .input(random_tensor({1, 5, 5}))
      .constant(Tensor::vector<int64_t>({5, 5}))
      .constant(Tensor::vector<int64_t>({1, 5}))
      .check_grad();
  OpCase("Col2Im", 18)
      .attr("strides", Ints{2, 2})
      .attr("pads", Ints{1, 0, 0, 1})
      .attr("dilations", Ints{1, 2})
      .input(random_tensor({2, 8, 6}))
      .constant(Tensor::vector<int64_t>({5, 5}))
      .constant(Tensor::vector<int64_t>({2, 2}))
      .check_grad();
}

TEST(Col2Im, Values) {
  // blocks of 2 at places 0 and 1 of three: the middle is in both
  OpCase("Col2Im", 18)
      .input(floats({1, 2, 10, 20}, {1, 2, 2}))
      .constant(ints({1, 3}))
      .constant(ints({1, 2}))
      .expect(floats({1, 12, 20}, {1, 1, 1, 3}));
}

TEST(Im2Col, ValuesAndGradients) {
  OpCase("Im2Col", 1, std::string(kOwnDomain))
      .input(floats({5, 6, 7}, {1, 1, 1, 3}))
      .constant(ints({1, 2}))
      .expect(floats({5, 6, 6, 7}, {1, 2, 2}));
  OpCase("Im2Col", 1, std::string(kOwnDomain))
      .attr("pads", Ints{1, 0, 0, 1})
      .input(random_tensor({2, 2, 3, 3}))
      .constant(ints({2, 2}))
      .check_grad({0});
}

}  // namespace onnxtrain::testing
