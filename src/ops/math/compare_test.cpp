// Values of the comparisons.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(Compare, Values) {
  Tensor a = Tensor::vector<float>({1, 2, NAN}), b = Tensor::vector<float>({2, 2, NAN});
  OpCase("Equal", 13).input(a).input(b).expect(bools({0, 1, 0}));
  OpCase("Less", 13).input(a).input(b).expect(bools({1, 0, 0}));
  OpCase("Greater", 13).input(a).input(b).expect(bools({0, 0, 0}));
  OpCase("LessOrEqual", 16).input(a).input(b).expect(bools({1, 1, 0}));
  OpCase("GreaterOrEqual", 16).input(a).input(b).expect(bools({0, 1, 0}));
  Tensor s = Tensor::vector<std::string>({"x", "y"});
  OpCase("Equal", 19).input(s).input(Tensor::scalar<std::string>("y")).expect(bools({0, 1}));
  // before opset 7 `axis` says where the second input lies
  OpCase("Greater", 1)
      .attr("broadcast", int64_t(1))
      .attr("axis", int64_t(0))
      .input(Tensor::vector<float>({1, 2, 3, 4}).reshaped({2, 2}))
      .input(Tensor::vector<float>({1, 3}))
      .expect(bools({0, 1, 0, 1}).reshaped({2, 2}));
}

}  // namespace onnxtrain::testing
