#include "core/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

namespace onnxtrain {
namespace {

using Words = std::array<uint32_t, 4>;

TEST(Random, PhiloxKnownAnswers) {  // Random123's kat_vectors
  EXPECT_EQ(philox_block({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox_block({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(
      philox_block({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
      (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, StreamsDiffer) {
  std::set<Words> seen;
  for (uint64_t seed = 0; seed < 4; ++seed)
    for (uint64_t stream = 0; stream < 8; ++stream)
      for (uint64_t step = 0; step < 8; ++step)
        for (uint64_t i = 0; i < 8; ++i) seen.insert(philox(seed, stream, step, i));
  EXPECT_EQ(seen.size(), 4u * 8 * 8 * 8);
}

TEST(Random, AnyPieceOfAStreamIsTheSame) {
  std::vector<float> all(1000), normal(1000), piece(100);
  philox_uniform(7, 1, 2, 0, 1000, all.data());
  philox_normal(7, 1, 2, 0, 1000, normal.data());
  for (uint64_t first : {0, 1, 2, 3, 5, 414}) {
    philox_uniform(7, 1, 2, first, 100, piece.data());
    EXPECT_TRUE(std::equal(piece.begin(), piece.end(), all.begin() + long(first)));
    philox_normal(7, 1, 2, first, 100, piece.data());
    EXPECT_TRUE(std::equal(piece.begin(), piece.end(), normal.begin() + long(first)));
  }
  EXPECT_EQ(all[5], float(philox(7, 1, 2, 1)[1] >> 8) * 0x1p-24f);
}

TEST(Random, Moments) {
  const int64_t n = 200000;
  std::vector<float> v(n);
  philox_uniform(0, 0, 0, 0, n, v.data());
  double sum = 0, square = 0;
  for (float x : v) {
    ASSERT_GE(x, 0.0f);
    ASSERT_LT(x, 1.0f);
    sum += x;
  }
  EXPECT_NEAR(sum / n, 0.5, 0.003);
  philox_normal(0, 0, 0, 0, n, v.data());
  sum = 0;
  for (float x : v) sum += x, square += double(x) * x;
  EXPECT_NEAR(sum / n, 0, 0.01);
  EXPECT_NEAR(square / n, 1, 0.015);
}

TEST(Random, NumpyRandomState) {  // numpy.random.RandomState(0 and 42)
  Mt19937 a(0);
  for (double want : {0.5488135039273248, 0.7151893663724195, 0.6027633760716439})
    EXPECT_EQ(a.uniform(), want);
  Mt19937 b(42);
  for (double want : {0.4967141530112327, -0.13826430117118466, 0.6476885381006925})
    EXPECT_EQ(b.normal(), want);
  Mt19937 c(0);
  double last = 0;
  for (int i = 0; i < 10000; ++i) last = c.uniform();
  EXPECT_EQ(last, 0.8135750799512289);
}

TEST(Random, Permutations) {
  for (int64_t n : {0, 1, 2, 3, 10, 1001}) {
    std::vector<int64_t> p = permutation(n, 3, 5);
    EXPECT_EQ(p, permutation(n, 3, 5));
    if (n > 9) {
      EXPECT_NE(p, permutation(n, 3, 6));
      EXPECT_NE(p, permutation(n, 4, 5));
    }
    std::sort(p.begin(), p.end());
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(p[size_t(i)], i);
  }
  std::vector<int> counts(24);  // all 4! orders about equally often
  for (uint64_t e = 0; e < 24000; ++e) {
    const std::vector<int64_t> p = permutation(4, 0, e);
    const int64_t rank = p[0] * 6 + (p[1] - (p[1] > p[0])) * 2 + (p[2] > p[3]);
    ++counts[size_t(rank)];
  }
  for (int c : counts) EXPECT_NEAR(c, 1000, 160);
}

TEST(Random, HashKnownAnswersAndPieces) {  // XXH64
  EXPECT_EQ(hash64("", 0), 0xEF46DB3751D8E999u);
  EXPECT_EQ(hash64("abc", 3), 0x44BC2CF5AD770999u);
  std::string text;
  for (int i = 0; i < 1000; ++i) text += char(i * 7);
  const uint64_t whole = hash64(text.data(), text.size(), 5);
  for (size_t step : {1, 3, 31, 32, 33, 64, 500}) {
    Hash64 h(5);
    for (size_t i = 0; i < text.size(); i += step)
      h.add(text.data() + i, std::min(step, text.size() - i));
    EXPECT_EQ(h.value(), whole);
  }
  EXPECT_NE(whole, hash64(text.data(), text.size(), 6));
}

}  // namespace
}  // namespace onnxtrain
