// Values and gradients of Scatter, ScatterElements and ScatterND.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(Scatter, Values) {
  OpCase("ScatterElements", 18)
      .attr("axis", int64_t(1))
      .attr("reduction", std::string("add"))
      .input(floats({1, 2, 3}, {1, 3}))
      .input(ints({1, 1}, {1, 2}))
      .input(floats({10, 20}, {1, 2}))
      .expect(floats({1, 32, 3}, {1, 3}));
  OpCase("Scatter", 9)
      .input(floats({1, 2, 3}))
      .input(ints({-1}))
      .input(floats({9}))
      .expect(floats({1, 2, 9}));
  OpCase("ScatterND", 18)
      .attr("reduction", std::string("max"))
      .input(floats({1, 2, 3, 4}, {2, 2}))
      .input(ints({1, 1}, {2, 1}))
      .input(floats({0, 9, 5, 8}, {2, 2}))
      .expect(floats({1, 2, 5, 9}, {2, 2}));
  OpCase("ScatterND", 11)
      .input(Tensor::vector<std::string>({"a", "b"}))
      .input(ints({1}, {1, 1}))
      .input(Tensor::vector<std::string>({"z"}))
      .expect(Tensor::vector<std::string>({"a", "z"}));
  EXPECT_THROW(
      OpCase("ScatterElements", 18).input(floats({1})).input(ints({1})).input(floats({1})).run(),
      Error);
  EXPECT_THROW(
      OpCase("ScatterND", 18).input(floats({1})).input(ints({-2}, {1, 1})).input(floats({1})).run(),
      Error);
}

TEST(Scatter, Gradients) {
  for (const char* how : {"none", "add", "mul", "max", "min"}) {
    bool once = std::string(how) == "none";
    OpCase("ScatterElements", 18)
        .attr("axis", int64_t(1))
        .attr("reduction", std::string(how))
        .input(random_tensor({2, 4}))
        .input(ints(once ? Ints{1, 3, 0, 2} : Ints{1, 1, 0, 2}, {2, 2}))
        .input(random_tensor({2, 2}, -1, 1, 5))
        .check_grad();
    OpCase("ScatterND", 18)
        .attr("reduction", std::string(how))
        .input(random_tensor({3, 2}))
        .input(ints(once ? Ints{1, 0} : Ints{1, 1}, {2, 1}))
        .input(random_tensor({2, 2}, -1, 1, 5))
        .check_grad();
  }
  // a factor of zero: the others get nothing, it gets their product
  OpCase("ScatterElements", 18)
      .attr("reduction", std::string("mul"))
      .input(floats({2, 3}))
      .input(ints({0, 0, 1}))
      .input(floats({0, 5, 4}))
      .check_grad();
}

}  // namespace onnxtrain::testing
