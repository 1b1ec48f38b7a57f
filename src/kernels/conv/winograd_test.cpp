// Winograd's convolution and both gradients against the definition in double: as exact as a direct
// sum, over odd sizes, any padding and channel counts that fill no vector; the same bits for any
// thread count.
#include "kernels/conv/winograd.hpp"

#include <gtest/gtest.h>

#include "tests/support/conv_case.hpp"

namespace onnxtrain::testing {

namespace {

ConvCase case_of(int64_t batch, int64_t in, int64_t out, std::vector<int64_t> size,
                 std::vector<int64_t> begin, std::vector<int64_t> end) {
  return {batch,         in, out, 1, std::move(size), {3, 3}, {1, 1}, {1, 1}, std::move(begin),
          std::move(end)};
}

std::vector<ConvCase> winograd_cases() {
  return {
      case_of(2, 16, 16, {8, 8}, {1, 1}, {1, 1}),   case_of(1, 37, 21, {13, 11}, {1, 1}, {1, 1}),
      case_of(4, 19, 70, {7, 9}, {0, 0}, {0, 0}),   case_of(2, 17, 130, {9, 8}, {2, 0}, {1, 2}),
      case_of(1, 24, 16, {16, 16}, {3, 3}, {3, 3}), case_of(32, 64, 33, {4, 4}, {1, 1}, {1, 1}),
      case_of(1, 300, 18, {12, 12}, {1, 1}, {1, 1})};
}

// A third dimension in front; the gradient of the weights is not made this way.
std::vector<ConvCase> deep_cases() {
  auto deep = [](int64_t batch, int64_t in, int64_t out, std::vector<int64_t> size, int64_t taps,
                 std::vector<int64_t> begin, std::vector<int64_t> end) {
    return ConvCase{batch,
                    in,
                    out,
                    1,
                    std::move(size),
                    {taps, 3, 3},
                    {1, 1, 1},
                    {1, 1, 1},
                    std::move(begin),
                    std::move(end)};
  };
  return {deep(2, 16, 24, {5, 8, 6}, 3, {1, 1, 1}, {1, 1, 1}),
          deep(1, 35, 17, {5, 7, 9}, 3, {0, 0, 1}, {0, 2, 1}),
          deep(2, 16, 16, {3, 6, 6}, 2, {1, 1, 1}, {0, 1, 1}),
          deep(1, 18, 40, {2, 9, 8}, 3, {2, 1, 1}, {1, 1, 1})};
}

// The gradient of the weights behind the interface of the others.
struct GradW {
  simd::WinogradGradW plan;
  size_t workspace() const { return plan.workspace(); }
  void run(const float* dy, const float* x, const float*, float* dw, void* area, ThreadPool& pool) {
    plan.run(dy, x, dw, area, pool);
  }
};

std::vector<float> by_winograd(const ConvOperandsCase& p, ConvPass pass, int threads, bool fixed) {
  if (pass == ConvPass::kWeightGradient) {
    GradW plan{simd::WinogradGradW(p.s)};
    return conv_planned(p, pass, plan, threads);
  }
  simd::Winograd plan(p.s, pass == ConvPass::kInputGradient, threads);
  if (fixed) plan.fix_weights(p.w.as<float>());
  return conv_planned(p, pass, plan, threads, true);
}

}  // namespace

TEST(Winograd, RoundsLikeTheDefinition) {
  for (const ConvCase& c : winograd_cases()) {
    ConvOperandsCase p(c);
    ASSERT_TRUE(simd::winograd_fits(p.s));
    for (ConvPass pass : kPasses) {
      std::vector<double> want = conv_defined<double>(p, pass, true);
      double direct = distance(conv_defined<float>(p, pass, true), want);
      double got = distance(by_winograd(p, pass, 1, false), want);
      EXPECT_LT(got, 2.5 * direct) << c.in << " -> " << c.out << ", pass " << int(pass);
      EXPECT_LT(got, 1e-6);
    }
  }
}

TEST(Winograd, ThirdDimension) {
  for (const ConvCase& c : deep_cases()) {
    ConvOperandsCase p(c);
    ASSERT_TRUE(simd::winograd_fits(p.s));
    ASSERT_FALSE(simd::winograd_fits(p.s, true));
    for (ConvPass pass : {ConvPass::kForward, ConvPass::kInputGradient}) {
      std::vector<double> want = conv_defined<double>(p, pass, true);
      double direct = distance(conv_defined<float>(p, pass, true), want);
      std::vector<float> first = by_winograd(p, pass, 1, false);
      EXPECT_LT(distance(first, want), 2.5 * direct) << c.in << " -> " << c.out;
      EXPECT_LT(distance(first, want), 1e-6);
      for (int threads : {1, 2, 4})
        EXPECT_TRUE(same_bits(first, by_winograd(p, pass, threads, true)));
    }
  }
}

TEST(Winograd, SameBitsForAnyThreadCountAndFixedWeights) {
  for (const ConvCase& c : winograd_cases()) {
    ConvOperandsCase p(c);
    for (ConvPass pass : kPasses) {
      std::vector<float> first = by_winograd(p, pass, 1, false);
      for (int threads : {1, 2, 4})
        EXPECT_TRUE(same_bits(first, by_winograd(p, pass, threads, true)));
    }
  }
}

TEST(Winograd, OnlyWhereItApplies) {
  kernels::ConvShape s = winograd_cases()[0].shape();
  auto with = [&](auto change) {
    kernels::ConvShape other = s;
    change(other);
    return simd::winograd_fits(other);
  };
  EXPECT_TRUE(simd::winograd_fits(s));
  EXPECT_FALSE(with([](auto& o) { o.groups = 2; }));
  EXPECT_FALSE(with([](auto& o) { o.window.strides = {1, 2}; }));
  EXPECT_FALSE(with([](auto& o) { o.window.dilations = {2, 1}; }));
  EXPECT_FALSE(with([](auto& o) { o.window.kernel = {3, 1}; }));
  EXPECT_FALSE(with([](auto& o) { o.in_channels = 3; }));
}

}  // namespace onnxtrain::testing
