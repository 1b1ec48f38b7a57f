// RegexFullMatch and the engine behind it.
#include <gtest/gtest.h>

#include <chrono>

#include "core/error.hpp"
#include "ops/text/regex_match.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(Regex, Operator) {
  OpCase("RegexFullMatch", 20)
      .attr("pattern", std::string("[a-c]+"))
      .input(words({"abc", "abd", ""}))
      .expect(bools({1, 0, 0}));
  EXPECT_THROW(
      OpCase("RegexFullMatch", 20).attr("pattern", std::string("(")).input(words({"a"})).run(),
      Error);
}

TEST(Regex, MatchesLikeRe2) {
  struct {
    const char* pattern;
    const char* text;
    bool yes;
  } cases[] = {{"", "", true},
               {"", "a", false},
               {"a*", "aaa", true},
               {"a|bc", "bc", true},
               {"a|bc", "abc", false},
               {"(ab){2,3}", "abab", true},
               {"(ab){2,3}", "ab", false},
               {"[^a-c]+", "xyz", true},
               {"[^a-c]+", "xaz", false},
               {"\\d+\\.\\d*", "3.", true},
               {"\\w+\\s\\W", "ab !", true},
               {".", "\n", false},
               {"(?s).", "\n", true},
               {"(?i)aBc", "AbC", true},
               {"(?i:a)b", "Ab", true},
               {"(?i:a)b", "AB", false},
               {"^a$", "a", true},
               {"[[:digit:]a]+", "1a2", true},
               {"\\Qa.b\\E+", "a.bb", true},
               {"\\x41\\x{42}", "AB", true},
               {"ü+", "üü", true},
               {"[α-ω]+", "αω", true},
               {"www\\.[\\w.-]+\\.\\bcom\\b", "www.google.com", true},
               {"a\\b b", "a b", true},
               {"x{0}", "", true},
               {"a{,2}", "a{,2}", true},
               {"(?P<n>a)+?", "aa", true},
               {"[]a]+", "]a", true}};
  for (const auto& c : cases)
    EXPECT_EQ(ops::Regex(c.pattern).full_match(c.text), c.yes) << c.pattern << " " << c.text;
  for (const char* bad :
       {"(", ")", "a**", "*a", "[b", "[b-a]", "a{1001}", "\\1", "(?=a)", "\\pL", "a\\"})
    EXPECT_THROW(ops::Regex r(bad), Error) << bad;
}

TEST(Regex, HostilePatternsAreFast) {
  std::string text(20000, 'a');
  auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(ops::Regex("(a+)+b").full_match(text));
  EXPECT_FALSE(ops::Regex("(a|a)*(a|a)*c").full_match(text));
  EXPECT_THROW(ops::Regex r("((a{1000}){1000}){1000}"), Error);
  std::chrono::duration<double> d = std::chrono::steady_clock::now() - start;
  EXPECT_LT(d.count(), 2.0);
}

}  // namespace onnxtrain::testing
