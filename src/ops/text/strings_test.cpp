// StringConcat and StringSplit.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(Strings, Concat) {
  OpCase("StringConcat", 20)
      .input(words({"a", "b"}, {2, 1}))
      .input(words({"x", "y"}))
      .expect(words({"ax", "ay", "bx", "by"}, {2, 2}));
}

TEST(Strings, Split) {
  OpCase("StringSplit", 20)
      .outputs(2)
      .input(words({" a  b ", "c", ""}))
      .expect(words({"a", "b", "c", "", "", ""}, {3, 2}))
      .expect(Tensor::vector<int64_t>({2, 1, 0}), 1);
  OpCase("StringSplit", 20)
      .outputs(2)
      .attr("delimiter", std::string(","))
      .attr("maxsplit", int64_t(1))
      .input(words({"a,b,c", ""}))
      .expect(words({"a", "b,c", "", ""}, {2, 2}))
      .expect(Tensor::vector<int64_t>({2, 1}), 1);
}

}  // namespace onnxtrain::testing
