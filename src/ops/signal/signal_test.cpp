// Values and gradients of DFT, STFT, Col2Im, DeformConv, MaxUnpool and the region pools.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

using I = std::vector<int64_t>;

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

TEST(Col2Im, Gradients) {
  OpCase("Col2Im", 18)
      .input(random_tensor({1, 5, 5}))
      .constant(Tensor::vector<int64_t>({5, 5}))
      .constant(Tensor::vector<int64_t>({1, 5}))
      .check_grad();
  OpCase("Col2Im", 18)
      .attr("strides", I{2, 2})
      .attr("pads", I{1, 0, 0, 1})
      .attr("dilations", I{1, 2})
      .input(random_tensor({2, 8, 6}))
      .constant(Tensor::vector<int64_t>({5, 5}))
      .constant(Tensor::vector<int64_t>({2, 2}))
      .check_grad();
}

TEST(MaxUnpool, Gradients) {
  Tensor at = Tensor::vector<int64_t>({5, 7, 13, 15}).reshaped({1, 1, 2, 2});
  OpCase("MaxUnpool", 11)
      .attr("kernel_shape", I{2, 2})
      .attr("strides", I{2, 2})
      .input(random_tensor({1, 1, 2, 2}))
      .input(at)
      .check_grad();
  OpCase("MaxUnpool", 11)
      .attr("kernel_shape", I{2, 2})
      .attr("strides", I{2, 2})
      .input(random_tensor({1, 1, 2, 2}))
      .input(at)
      .constant(Tensor::vector<int64_t>({1, 1, 5, 5}))
      .check_grad();
  Tensor bad = Tensor::vector<int64_t>({5, 7, 13, 16}).reshaped({1, 1, 2, 2});
  EXPECT_THROW(OpCase("MaxUnpool", 11)
                   .attr("kernel_shape", I{2, 2})
                   .attr("strides", I{2, 2})
                   .input(random_tensor({1, 1, 2, 2}))
                   .input(bad)
                   .run(),
               Error);
}

TEST(Roi, Gradients) {
  Tensor rois = Tensor::vector<float>({0.3f, 0.2f, 3.1f, 2.7f, 1, 1, 4.2f, 4.4f}).reshaped({2, 4});
  Tensor images = Tensor::vector<int64_t>({1, 0});
  for (const char* mode : {"avg", "max"})
    OpCase("RoiAlign", 16)
        .attr("mode", std::string(mode))
        .attr("output_height", int64_t(2))
        .attr("output_width", int64_t(3))
        .attr("sampling_ratio", int64_t(2))
        .input(random_tensor({2, 2, 5, 5}))
        .input(rois)
        .input(images)
        .check_grad({0});
  Tensor boxes = Tensor::vector<float>({1, 0, 0, 3, 3, 0, 1, 1, 4, 4}).reshaped({2, 5});
  OpCase("MaxRoiPool", 1)
      .attr("pooled_shape", I{2, 2})
      .input(random_tensor({2, 2, 5, 5}))
      .input(boxes)
      .check_grad({0});
  EXPECT_THROW(
      OpCase("RoiAlign", 16).input(random_tensor({1, 2, 5, 5})).input(rois).input(images).run(),
      Error);
}

TEST(DeformConv, Gradients) {
  OpCase("DeformConv", 19)
      .attr("pads", I{0, 1, 1, 0})
      .input(random_tensor({2, 2, 4, 4}))
      .input(random_tensor({2, 2, 2, 2}, -1, 1, 2))
      .input(random_tensor({2, 8, 4, 4}, -0.4, 0.4, 3))
      .check_grad();
  OpCase("DeformConv", 19)
      .attr("group", int64_t(2))
      .attr("offset_group", int64_t(2))
      .attr("strides", I{2, 1})
      .input(random_tensor({1, 4, 4, 3}))
      .input(random_tensor({2, 2, 2, 2}, -1, 1, 2))
      .input(random_tensor({1, 16, 2, 2}, -0.4, 0.4, 3))
      .input(random_tensor({2}, -1, 1, 4))
      .input(random_tensor({1, 8, 2, 2}, 0.1, 1, 5))
      .check_grad();
}

}  // namespace onnxtrain::testing
