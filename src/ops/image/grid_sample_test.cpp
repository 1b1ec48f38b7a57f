// GridSample: gradients of image and grid in every mode.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(GridSample, Gradients) {
  for (const char* mode : {"linear", "cubic", "nearest"})
    for (const char* padding : {"zeros", "border", "reflection"})
      for (int64_t align : {0, 1}) {
        OpCase c("GridSample", 20);
        c.attr("mode", std::string(mode))
            .attr("padding_mode", std::string(padding))
            .attr("align_corners", align);
        c.input(random_tensor({1, 2, 3, 4}))
            .input(random_tensor({1, 2, 3, 2}, -1.3, 1.3, 5))
            .check_grad();
      }
  OpCase("GridSample", 20)
      .input(random_tensor({1, 1, 2, 3, 2}))
      .input(random_tensor({1, 2, 1, 2, 3}, -1, 1, 5))
      .check_grad();
  OpCase("GridSample", 16)
      .attr("mode", std::string("bilinear"))
      .input(random_tensor({2, 1, 3, 3}))
      .input(random_tensor({2, 2, 2, 2}, -1, 1, 5))
      .check_grad();
}

// Coordinates that are no numbers, infinite or too far for an index: zeros are zero, the border is
// the nearest pixel (a coordinate that is no number counts as far to the left), reflection ends
// inside the image. No gradient goes to such a coordinate.
TEST(GridSample, WildCoordinates) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  Tensor image = floats({1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 1, 3, 3});
  Tensor grid = floats({inf, -inf, nan, 1e30f, -1e30f, 0}, {1, 1, 3, 2});
  auto sample = [&](const char* padding, const char* mode) {
    return OpCase("GridSample", 20)
        .attr("padding_mode", std::string(padding))
        .attr("mode", std::string(mode))
        .input(image)
        .input(grid);
  };
  for (const char* mode : {"nearest", "linear"}) {
    sample("zeros", mode).expect(floats({0, 0, 0}, {1, 1, 1, 3}));
    sample("border", mode).expect(floats({3, 7, 4}, {1, 1, 1, 3}));
  }
  for (const char* mode : {"nearest", "linear"})
    for (double v : sample("reflection", mode).run()[0].to_doubles()) {
      EXPECT_GE(v, 1) << mode;
      EXPECT_LE(v, 9) << mode;
    }
  for (const char* padding : {"zeros", "border"}) {
    std::vector<Tensor> g = OpCase("GridSampleGrad", 1, std::string(kOwnDomain))
                                .attr("padding_mode", std::string(padding))
                                .outputs(2)
                                .input(floats({1, 1, 1}, {1, 1, 1, 3}))
                                .input(image)
                                .input(grid)
                                .run();
    for (const Tensor& t : g)
      for (double v : t.to_doubles()) EXPECT_TRUE(std::isfinite(v)) << padding;
    std::vector<double> d = g[1].to_doubles();
    for (size_t k = 0; k < 5; ++k) EXPECT_EQ(d[k], 0) << padding << " " << k;
  }
}

}  // namespace onnxtrain::testing
