// Convolutions of few channels per group, all three passes, against the definition, and the same
// bits for any thread count.
#include "kernels/conv/grouped_conv.hpp"

#include <gtest/gtest.h>

#include "tests/support/conv_case.hpp"

namespace onnxtrain::testing {

namespace {

std::vector<ConvCase> grouped_cases() {
  return {{2, 9, 9, 9, {7, 5}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},       // depthwise
          {3, 40, 40, 40, {11, 12}, {5, 3}, {2, 3}, {1, 1}, {2, 0}, {1, 2}},  // strides
          {1, 17, 17, 17, {9, 10}, {3, 3}, {2, 1}, {2, 3}, {2, 3}, {2, 3}},   // dilations
          {4, 72, 72, 72, {50}, {31}, {1}, {1}, {15}, {15}},                  // one dimension
          {2, 12, 12, 12, {4, 5, 6}, {2, 3, 3}, {1, 2, 1}, {1, 1, 2}, {0, 1, 2}, {1, 1, 2}},
          {2, 10, 30, 10, {8, 9}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},   // multiplier
          {3, 32, 32, 8, {9, 7}, {3, 3}, {1, 2}, {1, 1}, {1, 1}, {1, 1}},    // groups of 4
          {2, 15, 10, 5, {12, 12}, {3, 5}, {1, 1}, {1, 1}, {1, 2}, {0, 2}},  // 3 -> 2
          {2, 14, 49, 7, {6}, {3}, {2}, {1}, {2}, {1}},                      // 2 -> 7
          {1, 64, 16, 8, {10, 10}, {2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}},  // 8 -> 2
          {2, 32, 48, 2, {9, 17}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},   // 16 -> 24
          {3, 24, 64, 2, {11, 7}, {3, 2}, {2, 1}, {1, 2}, {1, 0}, {0, 1}},   // 12 -> 32
          {1, 64, 80, 8, {6, 29}, {1, 5}, {1, 1}, {1, 1}, {0, 2}, {0, 2}},   // 8 -> 10
          {5, 96, 96, 12, {13}, {3}, {1}, {1}, {1}, {1}},                    // 8 -> 8
          {20, 8, 8, 8, {3, 3}, {5, 5}, {1, 1}, {1, 1}, {4, 4}, {4, 4}},     // taps outside
          {1, 96, 96, 96, {40, 40}, {7, 7}, {1, 1}, {1, 1}, {3, 3}, {3, 3}}};
}

}  // namespace

TEST(GroupedConv, AgainstTheDefinition) {
  for (const ConvCase& c : grouped_cases()) {
    ConvOperandsCase p(c);
    for (ConvPass pass : kPasses) {
      std::vector<double> want = conv_defined<double>(p, pass, true);
      std::vector<float> first;
      for (int threads : {1, 2, 4}) {
        simd::GroupedConv plan(p.s, pass, threads);
        std::vector<float> got = conv_planned(p, pass, plan, threads, true);
        EXPECT_LT(distance(got, want), 4e-7) << c.in << " -> " << c.out << ", pass " << int(pass);
        if (first.empty()) first = got;
        EXPECT_TRUE(same_bits(first, got));
      }
    }
  }
}

}  // namespace onnxtrain::testing
