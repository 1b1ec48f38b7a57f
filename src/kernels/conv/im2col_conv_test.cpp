// Convolutions of few pixels through columns, all three passes, against the definition, and the
// same bits for any thread count.
#include "kernels/conv/im2col_conv.hpp"

#include <gtest/gtest.h>

#include "tests/support/conv_case.hpp"

namespace onnxtrain::testing {

namespace {

std::vector<ConvCase> column_cases() {
  return {{2, 70, 33, 1, {4, 4}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
          {3, 20, 40, 1, {7, 5}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 0}},  // stride 2, uneven
          {1, 17, 16, 1, {9, 8}, {3, 2}, {1, 3}, {2, 1}, {2, 0}, {2, 1}},  // dilated
          {1, 16, 24, 1, {2, 2}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},  // taps in the padding
          {1, 24, 17, 1, {3, 4, 3}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
          {2, 66, 31, 1, {11}, {5}, {3}, {1}, {2}, {0}}};
}

}  // namespace

TEST(Im2ColConv, AgainstTheDefinition) {
  for (const ConvCase& c : column_cases()) {
    ConvOperandsCase p(c);
    for (ConvPass pass : kPasses)
      for (bool bias : {true, false}) {
        std::vector<double> want = conv_defined<double>(p, pass, bias);
        std::vector<float> first;
        for (int threads : {1, 2, 4}) {
          simd::Im2ColConv plan(p.s, pass, bias);
          std::vector<float> got = conv_planned(p, pass, plan, threads, bias);
          EXPECT_LT(distance(got, want), 5e-7) << c.in << " -> " << c.out << ", pass " << int(pass);
          if (first.empty()) first = got;
          EXPECT_TRUE(same_bits(first, got));
        }
      }
  }
}

// What a build without oneDNN needs of it: groups, both orders, more pixels than one stretch has,
// stretches that end inside an image.
TEST(Im2ColConv, AnyShapeInBothOrders) {
  for (const ConvCase& c : std::vector<ConvCase>{
           {3, 8, 12, 1, {40, 40}, {5, 5}, {1, 1}, {1, 1}, {2, 2}, {2, 2}},  // 3 images, 8
                                                                             // stretches
           {2, 64, 16, 1, {33, 20}, {3, 3}, {2, 1}, {1, 1}, {1, 1}, {1, 1}},
           {2, 12, 18, 3, {9, 10}, {3, 2}, {1, 2}, {2, 1}, {1, 0}, {0, 1}},
           {5, 6, 6, 6, {7, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
           {2, 1, 4, 1, {28, 28}, {3, 3}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
           {1, 9, 5, 1, {6}, {1}, {1}, {1}, {0}, {0}}}) {
    ConvOperandsCase p(c);
    for (ConvPass pass : kPasses)
      for (bool last : {true, false})
        for (bool bias : {true, false}) {
          std::vector<double> want = conv_defined<double>(p, pass, bias);
          std::vector<float> first;
          for (int threads : {1, 2, 4}) {
            simd::Im2ColConv plan(p.s, pass, bias, last);
            std::vector<float> got = conv_planned(p, pass, plan, threads, bias, last);
            EXPECT_LT(distance(got, want), 1e-6)
                << c.in << " -> " << c.out << ", pass " << int(pass) << ", last " << last;
            if (first.empty()) first = got;
            EXPECT_TRUE(same_bits(first, got));
          }
        }
  }
}

TEST(Im2ColConv, OnlyWhereWeightsOutweighPixels) {
  auto fits = [](int64_t batch, int64_t channels, int64_t size) {
    ConvCase c{batch, channels, channels, 1, {size, size}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
    return simd::Im2ColConv::fits(c.shape());
  };
  EXPECT_TRUE(fits(1, 512, 4));
  EXPECT_FALSE(fits(32, 512, 4));
  EXPECT_FALSE(fits(1, 16, 4));
}

}  // namespace onnxtrain::testing
