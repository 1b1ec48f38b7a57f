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

TEST(GridSample, WildCoordinates) {
  float inf = std::numeric_limits<float>::infinity();
  for (const char* padding : {"zeros", "border", "reflection"}) {
    Tensor grid =
        Tensor::vector<float>({inf, -inf, std::nanf(""), 1e30f, -1e30f, 0}).reshaped({1, 1, 3, 2});
    OpCase("GridSample", 20)
        .attr("padding_mode", std::string(padding))
        .input(random_tensor({1, 1, 3, 3}))
        .input(grid)
        .run();
  }
}

}  // namespace onnxtrain::testing
