// Values and gradients of Pad.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(Pad, Values) {
  Tensor x = floats({1, 2, 3}, {1, 3});
  OpCase("Pad", 13)
      .input(x)
      .input(ints({0, 1, 1, 0}))
      .input(Tensor::scalar<float>(9))
      .expect(floats({9, 1, 2, 3, 9, 9, 9, 9}, {2, 4}));
  OpCase("Pad", 13)
      .attr("mode", std::string("reflect"))
      .input(x)
      .input(ints({0, 2, 0, 1}))
      .expect(floats({3, 2, 1, 2, 3, 2}, {1, 6}));
  OpCase("Pad", 13)
      .attr("mode", std::string("edge"))
      .input(x)
      .input(ints({0, 2, 0, 1}))
      .expect(floats({1, 1, 1, 2, 3, 3}, {1, 6}));
  OpCase("Pad", 19)
      .attr("mode", std::string("wrap"))
      .input(x)
      .input(ints({4, 1}))
      .skip_input()
      .input(ints({1}))
      .expect(floats({3, 1, 2, 3, 1, 2, 3, 1}, {1, 8}));
  OpCase("Pad", 13).input(x).input(ints({0, -1, 0, 1})).expect(floats({2, 3, 0}, {1, 3}));
  OpCase("Pad", 2)
      .attr("pads", Ints{0, 1, 0, 0})
      .attr("value", 7.f)
      .input(x)
      .expect(floats({7, 1, 2, 3}, {1, 4}));
  EXPECT_THROW(OpCase("Pad", 13).input(x).input(ints({0, -4, 0, 0})).run(), Error);
}

TEST(Pad, Gradients) {
  for (const char* mode : {"constant", "reflect", "edge", "wrap"}) {
    OpCase("Pad", 19)
        .attr("mode", std::string(mode))
        .input(random_tensor({3, 4}))
        .constant(ints({1, 2, 0, 3}))
        .check_grad({0});
    OpCase("Pad", 19)
        .attr("mode", std::string(mode))
        .input(random_tensor({3, 4}))
        .input(ints({2, 1}))
        .skip_input()
        .input(ints({-1}))
        .check_grad({0});
  }
  OpCase("Pad", 13)
      .input(random_tensor({3, 4}))
      .constant(ints({1, -1, 0, 2}))
      .input(random_tensor({}))
      .check_grad();
  OpCase("Pad", 2).attr("pads", Ints{0, 1, 1, 0}).input(random_tensor({2, 3})).check_grad();
}

}  // namespace onnxtrain::testing
