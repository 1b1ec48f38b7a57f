// Values of NonMaxSuppression.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(NonMaxSuppression, KeepsTheBest) {
  Tensor boxes =
      Tensor::vector<float>({0, 0, 1, 1, 0, 0.1f, 1, 1.1f, 0, 2, 1, 3}).reshaped({1, 3, 4});
  Tensor scores = Tensor::vector<float>({0.5f, 0.9f, 0.7f}).reshaped({1, 1, 3});
  OpCase("NonMaxSuppression", 11)
      .input(boxes)
      .input(scores)
      .input(Tensor::vector<int64_t>({3}))
      .input(Tensor::vector<float>({0.5f}))
      .expect(Tensor::vector<int64_t>({0, 0, 1, 0, 0, 2}).reshaped({2, 3}));
}

}  // namespace onnxtrain::testing
