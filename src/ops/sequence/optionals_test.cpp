// Optional, OptionalGetElement, OptionalHasElement.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"
#include "tests/support/text_case.hpp"

namespace onnxtrain::testing {

TEST(Optionals, Gradient) {
  const char* g = R"(
    g (double[2] x) => (double[2] y) {
      o = Optional(x)
      e = OptionalGetElement(o)
      y = Mul(e, e)
    })";
  check_text_grad(g, {{"x", vary({2}, 1)}}, {"x"});
}

TEST(Optionals, Values) {
  const char* g = R"(
    g (double[2] x) => (double[2] y, bool full, bool none) {
      o = Optional(x)
      y = OptionalGetElement(o)
      full = OptionalHasElement(o)
      none = OptionalHasElement()
    })";
  Feeds f = {{"x", doubles({1, 2})}};
  EXPECT_EQ(text_output(g, f, 0), (std::vector<double>{1, 2}));
  EXPECT_EQ(text_output(g, f, 1), std::vector<double>{1});
  EXPECT_EQ(text_output(g, f, 2), std::vector<double>{0});
}

}  // namespace onnxtrain::testing
