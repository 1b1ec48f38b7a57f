// Convolutions of windows that do not overlap, all three passes, against the definition, with fixed
// weights too, and the same bits for any thread count.
#include "kernels/conv/patch_conv.hpp"

#include <gtest/gtest.h>

#include "tests/support/conv_case.hpp"

namespace onnxtrain::testing {

namespace {

std::vector<ConvCase> patch_cases() {
  return {{2, 70, 33, 1, {7, 5}, {1, 1}, {2, 2}, {1, 1}, {0, 0}, {0, 0}},   // 1x1, stride 2
          {3, 300, 5, 1, {6, 5}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},   // few outputs
          {3, 7, 300, 1, {6, 5}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},   // few inputs
          {2, 24, 40, 1, {9, 8}, {2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}},   // a row is left
          {1, 3, 48, 1, {32, 33}, {8, 8}, {8, 8}, {1, 1}, {0, 0}, {0, 0}},  // patches
          {1, 20, 17, 1, {5, 8, 7}, {1, 2, 2}, {2, 3, 2}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}},
          {2, 66, 31, 1, {11}, {1}, {3}, {1}, {0}, {0}},                    // one dimension
          {20, 64, 64, 1, {8, 8}, {2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}},  // more pixels
          {2, 48, 51, 3, {6, 6}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}}};  // groups
}

}  // namespace

TEST(PatchConv, AgainstTheDefinition) {
  for (const ConvCase& c : patch_cases()) {
    ConvOperandsCase p(c);
    for (ConvPass pass : kPasses) {
      std::vector<double> want = conv_defined<double>(p, pass, true);
      std::vector<float> first;
      for (int threads : {1, 2, 4}) {
        simd::PatchConv plan(p.s, pass, true);
        std::vector<float> got = conv_planned(p, pass, plan, threads, true);
        EXPECT_LT(distance(got, want), 5e-7) << c.in << " -> " << c.out << ", pass " << int(pass);
        if (first.empty()) first = got;
        EXPECT_TRUE(same_bits(first, got));
      }
      simd::PatchConv plan(p.s, pass, true);
      plan.fix_weights(p.w.as<float>());
      EXPECT_LT(distance(conv_planned(p, pass, plan, 2, true), want), 5e-7);
    }
  }
}

TEST(PatchConv, OnlyWhereWindowsDoNotOverlap) {
  auto fits = [](const ConvCase& c) {
    return simd::PatchConv::fits(c.shape(), ConvPass::kForward);
  };
  EXPECT_TRUE(fits({2, 64, 64, 1, {8, 8}, {2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}}));
  EXPECT_FALSE(fits({2, 64, 64, 1, {8, 8}, {3, 3}, {2, 2}, {1, 1}, {0, 0}, {0, 0}}));
  EXPECT_FALSE(fits({2, 64, 64, 1, {8, 8}, {2, 2}, {2, 2}, {1, 1}, {1, 1}, {1, 1}}));
  EXPECT_FALSE(fits({2, 64, 64, 1, {8, 8}, {2, 2}, {3, 3}, {2, 2}, {0, 0}, {0, 0}}));
}

}  // namespace onnxtrain::testing
