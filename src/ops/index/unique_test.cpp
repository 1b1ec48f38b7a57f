// Values of Unique.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(Unique, Values) {
  OpCase u("Unique", 11);
  u.attr("sorted", int64_t(0)).input(floats({2, 1, 1, 3, 4, 3})).outputs(4);
  u.expect(floats({2, 1, 3, 4}), 0)
      .expect(ints({0, 1, 3, 4}), 1)
      .expect(ints({0, 1, 1, 2, 3, 2}), 2)
      .expect(ints({1, 2, 2, 1}), 3);
  OpCase("Unique", 11)
      .attr("axis", int64_t(0))
      .input(floats({1, 0, 1, 0, 0, 9}, {3, 2}))
      .outputs(1)
      .expect(floats({0, 9, 1, 0}, {2, 2}));
}

}  // namespace onnxtrain::testing
