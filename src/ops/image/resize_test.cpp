// Resize and Upsample: gradients over modes, coordinates and versions.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

namespace {
OpCase resize(const char* mode, const char* coordinates) {
  OpCase c("Resize", 19);
  c.attr("mode", std::string(mode))
      .attr("coordinate_transformation_mode", std::string(coordinates));
  return c.input(random_tensor({1, 2, 3, 4}));
}
}  // namespace

TEST(Resize, Gradients) {
  for (const char* mode : {"nearest", "linear", "cubic"})
    for (const char* c : {"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
                          "half_pixel_symmetric"}) {
      resize(mode, c).skip_input().constant(floats({1, 1, 2, 1.7f})).check_grad();
      resize(mode, c)
          .skip_input()
          .skip_input()
          .constant(Tensor::vector<int64_t>({1, 2, 2, 7}))
          .check_grad();
    }
  resize("linear", "half_pixel")
      .attr("antialias", int64_t(1))
      .skip_input()
      .constant(floats({1, 1, 0.6f, 0.5f}))
      .check_grad();
  resize("cubic", "half_pixel")
      .attr("antialias", int64_t(1))
      .attr("exclude_outside", int64_t(1))
      .skip_input()
      .constant(floats({1, 1, 0.6f, 0.5f}))
      .check_grad();
  resize("linear", "tf_crop_and_resize")
      .attr("extrapolation_value", 3.0f)
      .constant(floats({0, 0, 0.2f, -0.3f, 1, 1, 0.9f, 1.2f}))
      .skip_input()
      .constant(Tensor::vector<int64_t>({1, 2, 3, 5}))
      .check_grad();
}

TEST(Resize, OldVersions) {
  OpCase("Upsample", 9)
      .input(random_tensor({1, 1, 2, 2}))
      .constant(floats({1, 1, 2, 3}))
      .check_grad();
  OpCase("Upsample", 7)
      .attr("mode", std::string("linear"))
      .attr("scales", std::vector<float>{1, 1, 2, 3})
      .input(random_tensor({1, 1, 2, 2}))
      .check_grad();
  OpCase("Resize", 10)
      .input(random_tensor({1, 1, 4, 2}))
      .constant(floats({1, 1, 0.5f, 3}))
      .check_grad();
}

TEST(Resize, Values) {
  Tensor x = Tensor::vector<float>({1, 2, 3, 4}).reshaped({1, 1, 2, 2});
  OpCase("Resize", 19)
      .input(x)
      .skip_input()
      .input(floats({1, 1, 1, 2}))
      .expect(Tensor::vector<float>({1, 1, 2, 2, 3, 3, 4, 4}).reshaped({1, 1, 2, 4}));
  Tensor i = Tensor::vector<int64_t>({1, 2, 3, 4}).reshaped({2, 2});
  OpCase("Resize", 19)
      .input(i)
      .skip_input()
      .skip_input()
      .input(Tensor::vector<int64_t>({1, 4}))
      .expect(Tensor::vector<int64_t>({1, 1, 2, 2}).reshaped({1, 4}));
}

TEST(Resize, BadOperandsAreErrors) {
  Tensor x = random_tensor({1, 1, 2, 2});
  EXPECT_THROW(OpCase("Resize", 19).input(x).skip_input().input(floats({1, 1, 0, 2})).run(), Error);
  EXPECT_THROW(OpCase("Resize", 19).input(x).skip_input().input(floats({1, 2})).run(), Error);
  EXPECT_THROW(OpCase("Resize", 19).input(x).run(), Error);
  EXPECT_THROW(OpCase("Resize", 19)
                   .input(x)
                   .skip_input()
                   .skip_input()
                   .input(Tensor::vector<int64_t>({1, 1, -2, 2}))
                   .run(),
               Error);
  EXPECT_THROW(OpCase("Resize", 19)
                   .attr("mode", std::string("best"))
                   .input(x)
                   .skip_input()
                   .input(floats({1, 1, 2, 2}))
                   .run(),
               Error);
}

}  // namespace onnxtrain::testing
