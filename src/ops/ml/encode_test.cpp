// Values of LabelEncoder, CategoryMapper and OneHotEncoder.
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

namespace {
OpCase encode_op(const char* op, int version = 1) {
  return OpCase(op, version, std::string(kMlDomain));
}
}  // namespace

TEST(Encode, Labels) {
  encode_op("LabelEncoder", 4)
      .attr("keys_strings", std::vector<std::string>{"a", "b"})
      .attr("values_int64s", Ints{5, 6})
      .attr("default_int64", int64_t(-7))
      .input(words({"b", "c", "a"}))
      .expect(ints({6, -7, 5}));
  encode_op("LabelEncoder", 4)
      .attr("keys_floats", std::vector<float>{1, NAN})
      .attr("values_strings", std::vector<std::string>{"one", "none"})
      .input(floats({NAN, 1, 2}))
      .expect(words({"none", "one", "_Unused"}));
}

TEST(Encode, Categories) {
  OpCase to_number = encode_op("CategoryMapper");
  to_number.attr("cats_int64s", Ints{1, 2})
      .attr("cats_strings", std::vector<std::string>{"cat", "dog"})
      .attr("default_int64", int64_t(9))
      .input(words({"dog", "cow"}))
      .expect(ints({2, 9}));
  encode_op("CategoryMapper")
      .attr("cats_int64s", Ints{1, 2})
      .attr("cats_strings", std::vector<std::string>{"cat", "dog"})
      .attr("default_string", std::string("?"))
      .input(ints({1, 7}))
      .expect(words({"cat", "?"}));
}

TEST(Encode, OneHot) {
  encode_op("OneHotEncoder")
      .attr("cats_int64s", Ints{3, 5})
      .input(ints({5, 3, 4}))
      .expect(floats({0, 1, 1, 0, 0, 0}, {3, 2}));
  EXPECT_THROW(encode_op("OneHotEncoder")
                   .attr("cats_int64s", Ints{3, 5})
                   .attr("zeros", int64_t(0))
                   .input(ints({4}))
                   .run(),
               Error);
}

}  // namespace onnxtrain::testing
