// Values and gradients of DFT and STFT.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(Dft, Values) {
  // of 1, 2, 3, 4: 10, -2 + 2i, -2, -2 - 2i
  OpCase("DFT", 20)
      .input(floats({1, 2, 3, 4}, {1, 4, 1}))
      .skip_input()
      .constant(Tensor::scalar<int64_t>(1))
      .expect(floats({10, 0, -2, 2, -2, 0, -2, -2}, {1, 4, 2}));
  OpCase("DFT", 20)
      .attr("onesided", int64_t(1))
      .input(floats({1, 2, 3, 4}, {1, 4, 1}))
      .skip_input()
      .constant(Tensor::scalar<int64_t>(1))
      .expect(floats({10, 0, -2, 2, -2, 0}, {1, 3, 2}));
}

TEST(Stft, Values) {
  // frames 1 2 and 3 4: sum and difference
  OpCase("STFT", 17)
      .attr("onesided", int64_t(1))
      .input(floats({1, 2, 3, 4}, {1, 4, 1}))
      .constant(Tensor::scalar<int64_t>(2))
      .skip_input()
      .constant(Tensor::scalar<int64_t>(2))
      .expect(floats({3, 0, -1, 0, 7, 0, -1, 0}, {1, 2, 2, 2}));
}

TEST(Dft, Gradients) {
  Tensor axis = Tensor::scalar<int64_t>(1);
  for (int64_t length : {4, 5, 6, 9})
    for (int64_t inverse : {0, 1})
      for (int64_t width : {1, 2}) {
        OpCase("DFT", 20)
            .attr("inverse", inverse)
            .input(random_tensor({2, 6, width}))
            .constant(Tensor::scalar(length))
            .constant(axis)
            .check_grad();
        if (width == 1 || inverse)
          OpCase("DFT", 20)
              .attr("inverse", inverse)
              .attr("onesided", int64_t(1))
              .input(random_tensor({2, 6, width}))
              .constant(Tensor::scalar(length))
              .constant(axis)
              .check_grad();
      }
  OpCase("DFT", 17).attr("axis", int64_t(2)).input(random_tensor({1, 2, 3, 1})).check_grad();
}

TEST(Stft, Gradients) {
  OpCase("STFT", 17)
      .attr("onesided", int64_t(1))
      .input(random_tensor({1, 9, 1}))
      .constant(Tensor::scalar<int64_t>(2))
      .input(random_tensor({4}, 0.2, 1, 3))
      .constant(Tensor::scalar<int64_t>(4))
      .check_grad();
  OpCase("STFT", 17)
      .attr("onesided", int64_t(0))
      .input(random_tensor({2, 8, 2}))
      .constant(Tensor::scalar<int64_t>(3))
      .skip_input()
      .constant(Tensor::scalar<int64_t>(5))
      .check_grad();
}

}  // namespace onnxtrain::testing
