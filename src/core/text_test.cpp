// Words, numbers and quotes.
#include "core/text.hpp"

#include <gtest/gtest.h>

#include "core/utf8.hpp"

namespace onnxtrain {
namespace {

TEST(Text, EditDistance) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("adam", "adam"), 0u);
  EXPECT_EQ(edit_distance("adma", "adam"), 1u);  // neighbours exchanged
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("sitting", "kitten"), 3u);
}

TEST(Text, WithCommas) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1000), "1,000");
  EXPECT_EQ(with_commas(1234567), "1,234,567");
  EXPECT_EQ(with_commas(-123456), "-123,456");
  EXPECT_EQ(with_commas(-1234), "-1,234");
}

TEST(Text, Megabytes) {
  EXPECT_EQ(megabytes(1500000, 2), "1.50 MB");
  EXPECT_EQ(megabytes(0, 0), "0 MB");
  EXPECT_EQ(megabytes(12'700'000, 0), "13 MB");
}

TEST(Text, InvalidUtf8IsFound) {
  constexpr size_t none = std::string_view::npos;
  EXPECT_EQ(find_invalid_utf8(""), none);
  EXPECT_EQ(find_invalid_utf8("abc"), none);
  EXPECT_EQ(find_invalid_utf8("caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80"), none);
  EXPECT_EQ(find_invalid_utf8("caf\xE9"), 3u);  // Latin-1
  EXPECT_EQ(find_invalid_utf8("caf\xE9 au lait"), 3u);
  EXPECT_EQ(find_invalid_utf8("a\xC0\x80"), 1u);         // overlong
  EXPECT_EQ(find_invalid_utf8("\xED\xA0\x80"), 0u);      // a surrogate
  EXPECT_EQ(find_invalid_utf8("\xF4\x90\x80\x80"), 0u);  // beyond U+10FFFF
  EXPECT_EQ(find_invalid_utf8("ab\xE2\x82"), 2u);        // cut short
}

TEST(Text, Utf8OfACodePoint) {
  std::string out;
  for (char32_t c : {U'a', U'\u00E9', U'\u07FF', U'\u0800', U'\u20AC', U'\uFFFF', U'\U00010000',
                     U'\U0001F600', U'\U0010FFFF'})
    append_utf8(c, out);
  EXPECT_EQ(out, "a\u00E9\u07FF\u0800\u20AC\uFFFF\U00010000\U0001F600\U0010FFFF");
}

TEST(Text, InQuotes) {
  EXPECT_EQ(in_quotes("a b"), "\"a b\"");
  EXPECT_EQ(in_quotes("say \"\\\""), "\"say \\\"\\\\\\\"\"");
  EXPECT_EQ(in_quotes("a\nb"), "\"a\\u000ab\"");
  EXPECT_EQ(in_quotes("ü"), "\"ü\"");
}

}  // namespace
}  // namespace onnxtrain
