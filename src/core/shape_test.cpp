#include "core/shape.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace onnxtrain {
namespace {

std::string code_of(auto&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.code();
  }
  return "";
}

TEST(Shape, CountsElements) {
  EXPECT_EQ(num_elements({}), 1);
  EXPECT_EQ(num_elements({2, 3, 4}), 24);
  EXPECT_EQ(num_elements({2, 0, 4}), 0);
  EXPECT_EQ(code_of([] { num_elements({2, -1}); }), "OT1102");
  EXPECT_EQ(code_of([] { num_elements({int64_t(1) << 40, int64_t(1) << 40}); }), "OT1103");
  EXPECT_EQ(code_of([] { num_elements({0, int64_t(1) << 40, int64_t(1) << 40}); }), "OT1103");
  EXPECT_EQ(product({2, 3, 4}, 1, 3), 12);
  EXPECT_EQ(product({2, 3, 4}, 3, 3), 1);
}

TEST(Shape, StridesAreRowMajor) {
  EXPECT_EQ(strides_of({2, 3, 4}), (Shape{12, 4, 1}));
  EXPECT_EQ(strides_of({}), Shape{});
  EXPECT_EQ(strides_of({2, 0, 4}), (Shape{4, 4, 1}));
}

TEST(Shape, Prints) {
  EXPECT_EQ(to_string(Shape{2, 3}), "[2,3]");
  EXPECT_EQ(to_string(Shape{}), "[]");
}

TEST(Shape, Broadcasts) {
  EXPECT_EQ(broadcast({2, 1, 4}, {3, 1}), (Shape{2, 3, 4}));
  EXPECT_EQ(broadcast({}, {5}), Shape{5});
  EXPECT_EQ(broadcast({0}, {1}), Shape{0});
  EXPECT_EQ(code_of([] { broadcast({0}, {2}); }), "OT1104");
  EXPECT_EQ(code_of([] { broadcast({2, 3}, {4, 3}); }), "OT1104");
  EXPECT_EQ(broadcast_strides({3, 1}, {2, 3, 4}), (Shape{0, 1, 0}));
  EXPECT_EQ(broadcast_strides({2, 3, 4}, {2, 3, 4}), (Shape{12, 4, 1}));
  EXPECT_EQ(code_of([] { broadcast_strides({3}, {4}); }), "OT1104");
  EXPECT_EQ(code_of([] { broadcast_strides({1, 1}, {4}); }), "OT1104");
}

TEST(Shape, NormalisesAxes) {
  EXPECT_EQ(normalize_axis(-1, 3), 2);
  EXPECT_EQ(normalize_axis(0, 1), 0);
  EXPECT_EQ(code_of([] { normalize_axis(3, 3); }), "OT1105");
  EXPECT_EQ(code_of([] { normalize_axis(-4, 3); }), "OT1105");
  EXPECT_EQ(code_of([] { normalize_axis(0, 0); }), "OT1105");
}

}  // namespace
}  // namespace onnxtrain
