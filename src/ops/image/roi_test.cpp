// Values and gradients of RoiAlign and MaxRoiPool.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

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
      .attr("pooled_shape", Ints{2, 2})
      .input(random_tensor({2, 2, 5, 5}))
      .input(boxes)
      .check_grad({0});
  EXPECT_THROW(
      OpCase("RoiAlign", 16).input(random_tensor({1, 2, 5, 5})).input(rois).input(images).run(),
      Error);
}

TEST(Roi, Values) {
  Tensor x = floats({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, {1, 1, 4, 4});
  OpCase("MaxRoiPool", 1)
      .attr("pooled_shape", Ints{2, 2})
      .input(x)
      .input(floats({0, 0, 0, 3, 3}, {1, 5}))
      .expect(floats({6, 8, 14, 16}, {1, 1, 2, 2}));
  // one sample in the middle of a box of one pixel
  OpCase("RoiAlign", 16)
      .attr("output_height", int64_t(1))
      .attr("output_width", int64_t(1))
      .attr("sampling_ratio", int64_t(1))
      .attr("coordinate_transformation_mode", std::string("output_half_pixel"))
      .input(x)
      .input(floats({0.5f, 0.5f, 1.5f, 1.5f}, {1, 4}))
      .input(ints({0}))
      .expect(floats({6}, {1, 1, 1, 1}));
}

}  // namespace onnxtrain::testing
