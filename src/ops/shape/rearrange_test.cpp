// Values and gradients of DepthToSpace, SpaceToDepth, ReverseSequence and CenterCropPad.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(Rearrange, ValuesAndGradients) {
  for (const char* mode : {"DCR", "CRD"})
    OpCase("DepthToSpace", 13)
        .attr("blocksize", int64_t(2))
        .attr("mode", std::string(mode))
        .input(random_tensor({1, 8, 2, 3}))
        .check_grad();
  OpCase("SpaceToDepth", 13)
      .attr("blocksize", int64_t(2))
      .input(random_tensor({1, 2, 4, 2}))
      .check_grad();
  OpCase("ReverseSequence", 10)
      .input(floats({0, 1, 2, 3}, {2, 2}))
      .input(ints({1, 2}))
      .expect(floats({0, 3, 2, 1}, {2, 2}));
  OpCase("ReverseSequence", 10)
      .attr("batch_axis", int64_t(0))
      .attr("time_axis", int64_t(1))
      .input(random_tensor({2, 3, 2}))
      .input(ints({2, 3}))
      .check_grad();
  EXPECT_THROW(OpCase("ReverseSequence", 10).input(random_tensor({2, 2})).input(ints({1, 3})).run(),
               Error);
  OpCase("CenterCropPad", 18)
      .input(floats({1, 2, 3}))
      .input(ints({6}))
      .expect(floats({0, 1, 2, 3, 0, 0}));
  OpCase("CenterCropPad", 18).input(random_tensor({5, 2})).constant(ints({2, 5})).check_grad();
  OpCase("CenterCropPad", 18)
      .attr("axes", Ints{1})
      .input(random_tensor({2, 4}))
      .constant(ints({1}))
      .check_grad();
}

TEST(Rearrange, DepthAndSpace) {
  Tensor deep = floats({0, 1, 2, 3, 4, 5, 6, 7}, {1, 8, 1, 1});
  OpCase("DepthToSpace", 13)
      .attr("blocksize", int64_t(2))
      .input(deep)
      .expect(floats({0, 2, 4, 6, 1, 3, 5, 7}, {1, 2, 2, 2}));
  OpCase("DepthToSpace", 13)
      .attr("blocksize", int64_t(2))
      .attr("mode", std::string("CRD"))
      .input(deep)
      .expect(floats({0, 1, 2, 3, 4, 5, 6, 7}, {1, 2, 2, 2}));
  OpCase("SpaceToDepth", 13)
      .attr("blocksize", int64_t(2))
      .input(floats({0, 1, 2, 3}, {1, 1, 2, 2}))
      .expect(floats({0, 1, 2, 3}, {1, 4, 1, 1}));
}

}  // namespace onnxtrain::testing
