// FillLike and SumToShape: what gradient rules are written with.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(FillLike, Values) {
  OpCase("FillLike", 1, std::string(kOwnDomain))
      .attr("value", 2.5f)
      .input(random_tensor({2, 2}))
      .expect(floats({2.5f, 2.5f, 2.5f, 2.5f}, {2, 2}));
  OpCase("FillLike", 1, std::string(kOwnDomain))
      .attr("value", 1.0f)
      .input(ints({7, 8}))
      .expect(ints({1, 1}));
  OpCase("FillLike", 1, std::string(kOwnDomain)).input(random_tensor({2, 2})).check_grad();
}

TEST(SumToShape, ValuesAndGradients) {
  auto sum = [](const Tensor& x, const Tensor& like) {
    return OpCase("SumToShape", 1, std::string(kOwnDomain)).input(x).input(like);
  };
  Tensor x = floats({1, 2, 3, 4, 5, 6}, {2, 3});
  sum(x, random_tensor({3})).expect(floats({5, 7, 9}));
  sum(x, random_tensor({2, 1})).expect(floats({6, 15}, {2, 1}));
  sum(x, random_tensor({})).expect(Tensor::scalar<float>(21));
  sum(x, random_tensor({2, 3})).expect(x);
  for (const Shape& s : {Shape{4}, Shape{3, 1}, Shape{1, 4}, Shape{}, Shape{2, 3, 4}})
    sum(random_tensor({2, 3, 4}), random_tensor(s)).check_grad({0});
}

}  // namespace onnxtrain::testing
