// StringNormalizer.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(StringNormalizer, CaseAndStopwords) {
  OpCase("StringNormalizer", 10)
      .attr("case_change_action", std::string("UPPER"))
      .attr("stopwords", std::vector<std::string>{"monday"})
      .input(words({"Monday", "tüesday"}))
      .expect(words({"TÜESDAY"}));
  OpCase("StringNormalizer", 10)
      .attr("is_case_sensitive", int64_t(1))
      .attr("stopwords", std::vector<std::string>{"a"})
      .input(words({"a", "a"}, {1, 2}))
      .expect(words({""}, {1, 1}));
}

}  // namespace onnxtrain::testing
