#include "kernels/reduce/reduce.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "tests/support/random_floats.hpp"

namespace onnxtrain::simd {
namespace {

std::vector<float> randoms(int64_t n) { return testing::random_floats(size_t(n), 7, -1, 2); }

constexpr Reduce kAll[] = {Reduce::kSum,    Reduce::kMean, Reduce::kSumSquare,
                           Reduce::kSumAbs, Reduce::kMax,  Reduce::kMin};

double reference(Reduce op, const float* x, int64_t n, int64_t stride) {
  double s = op == Reduce::kMax ? -INFINITY : op == Reduce::kMin ? INFINITY : 0;
  for (int64_t i = 0; i < n; ++i) {
    const double v = x[i * stride];
    switch (op) {
      case Reduce::kSum:
      case Reduce::kMean:
        s += v;
        break;
      case Reduce::kSumSquare:
        s += v * v;
        break;
      case Reduce::kSumAbs:
        s += std::abs(v);
        break;
      case Reduce::kMax:
        s = std::max(s, v);
        break;
      case Reduce::kMin:
        s = std::min(s, v);
        break;
    }
  }
  return op == Reduce::kMean ? s / double(n) : s;
}

TEST(Reduce, Contiguous) {
  for (int64_t n : {1, 2, 7, 8, 9, 31, 64, 65, 100, 1000, 16384, 16385, 100003}) {
    const auto x = randoms(n);
    for (Reduce op : kAll) {
      const double want = reference(op, x.data(), n, 1), tol = 1e-5 * (1 + std::abs(want));
      EXPECT_NEAR(reduce(op, x.data(), n), want, tol) << n;
    }
    double s = 0;
    for (float v : x) s += double(v) * double(v);
    EXPECT_NEAR(dot(x.data(), x.data(), n), s, 1e-5 * s);
  }
  EXPECT_EQ(reduce(Reduce::kSum, nullptr, 0), 0);
  EXPECT_EQ(reduce(Reduce::kMax, nullptr, 0), -INFINITY);
}

TEST(Reduce, NanWins) {
  for (size_t at : {0u, 5u, 40u}) {
    auto x = randoms(41);
    x[at] = NAN;
    for (Reduce op : kAll) EXPECT_TRUE(std::isnan(reduce(op, x.data(), 41)));
  }
}

TEST(Reduce, Middle) {
  for (auto [outer, k, inner] : {std::tuple{1, 5, 7},
                                 {3, 17, 1},
                                 {4, 9, 33},
                                 {1, 5000, 40},
                                 {1, 700, 900},
                                 {50, 3, 100},
                                 {2, 1, 6},
                                 {1, 20000, 3}}) {
    const auto x = randoms(int64_t(outer) * k * inner);
    for (Reduce op : kAll) {
      std::vector<float> first;
      for (int threads : {1, 2, 4}) {
        ThreadPool pool(threads);
        std::vector<float> out(size_t(outer * inner));
        std::vector<char> space(reduce_middle_workspace(outer, k, inner) + 4);
        reduce_middle(pool, op, x.data(), outer, k, inner, out.data(), space.data());
        if (threads == 1) first = out;
        EXPECT_EQ(std::memcmp(first.data(), out.data(), out.size() * 4), 0);
      }
      for (int64_t o = 0; o < outer; ++o) {
        for (int64_t i = 0; i < inner; ++i) {
          const double want = reference(op, x.data() + o * k * inner + i, k, inner);
          ASSERT_NEAR(first[size_t(o * inner + i)], want, 1e-5 * (1 + std::abs(want)));
        }
      }
    }
  }
}

}  // namespace
}  // namespace onnxtrain::simd
