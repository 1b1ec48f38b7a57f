// Updates by rows: sums over equal indices, and rows that no index names stay as they are.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {
namespace {

OpCase own(const char* op) { return OpCase(op, 1, std::string(kOwnDomain)); }

TEST(RowSums, AddsWhatBelongsToOneRow) {
  OpCase c = own("RowSums");
  c.attr("size", int64_t(4)).outputs(2);
  c.input(floats({1, 2, 10, 20, 100, 200}, {3, 2})).input(ints({2, 0, 2}));
  c.expect(floats({101, 202, 10, 20, 0, 0}, {3, 2})).expect(ints({2, 0, -1}), 1);
}

TEST(RowSums, AnIndexOutsideTheTableIsAnError) {
  OpCase c = own("RowSums");
  c.attr("size", int64_t(2)).outputs(2).input(floats({1}, {1, 1})).input(ints({2}));
  EXPECT_THROW(c.run(), Error);
}

TEST(SgdRows, TouchesTheNamedRowsOnly) {
  own("SgdRows")
      .input(Tensor::scalar<float>(0.5f))
      .input(floats({1, 2, 3, 4, 5, 6}, {3, 2}))
      .input(floats({2, 4, 9, 9}, {2, 2}))
      .input(ints({1, -1}))
      .expect(floats({1, 2, 2, 2, 5, 6}, {3, 2}));
}

TEST(AdagradRows, TouchesTheNamedRowsOnly) {
  // H = 1 + 4 and 0 + 16; X = 3 - 0.5 * 2 / (sqrt(5) + 1), 4 - 0.5 * 4 / (4 + 1)
  OpCase c = own("AdagradRows");
  c.attr("epsilon", 1.0f).outputs(2);
  c.input(Tensor::scalar<float>(0.5f)).input(number(0)).input(floats({1, 2, 3, 4}, {2, 2}));
  c.input(floats({2, 4}, {1, 2})).input(floats({7, 7, 1, 0}, {2, 2})).input(ints({1}));
  c.expect(floats({1, 2, 2.69098301f, 3.6f}, {2, 2})).expect(floats({7, 7, 5, 16}, {2, 2}), 1);
}

}  // namespace
}  // namespace onnxtrain::testing
