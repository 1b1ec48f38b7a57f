// Words, numbers and quotes.
#include "core/text.hpp"

#include <gtest/gtest.h>

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

TEST(Text, InQuotes) {
  EXPECT_EQ(in_quotes("a b"), "\"a b\"");
  EXPECT_EQ(in_quotes("say \"\\\""), "\"say \\\"\\\\\\\"\"");
  EXPECT_EQ(in_quotes("a\nb"), "\"a\\u000ab\"");
  EXPECT_EQ(in_quotes("ü"), "\"ü\"");
}

}  // namespace
}  // namespace onnxtrain
