// Strings: StringConcat, StringSplit, StringNormalizer, RegexFullMatch, TfIdfVectorizer.
#include <gtest/gtest.h>

#include <chrono>

#include "core/error.hpp"
#include "ops/text/regex_match.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

namespace {
Tensor words(const std::vector<std::string>& v, Shape s = {}) {
  Tensor t = Tensor::vector<std::string>(v);
  return s.empty() ? t : t.reshaped(s);
}
}  // namespace

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

TEST(Strings, Normalizer) {
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

TEST(Strings, TfIdf) {
  OpCase("TfIdfVectorizer", 9)
      .attr("mode", std::string("TF"))
      .attr("min_gram_length", int64_t(2))
      .attr("max_gram_length", int64_t(2))
      .attr("max_skip_count", int64_t(0))
      .attr("ngram_counts", std::vector<int64_t>{0, 4})
      .attr("ngram_indexes", std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6})
      .attr("pool_int64s", std::vector<int64_t>{2, 3, 5, 4, 5, 6, 7, 8, 6, 7})
      .input(Tensor::vector<int32_t>({1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8}).reshaped({2, 6}))
      .expect(Tensor::vector<float>({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1}).reshaped({2, 7}));
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
