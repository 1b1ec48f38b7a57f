#include "data/sampler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/error.hpp"

namespace onnxtrain {
namespace {

std::vector<int64_t> all_rows(const Sampler& s) {
  std::vector<int64_t> rows;
  for (int64_t b = 0; b < s.batches(); ++b)
    rows.insert(rows.end(), s.batch(b).begin(), s.batch(b).end());
  return rows;
}

TEST(Sampler, OrderDependsOnSeedAndEpochOnly) {
  Sampler a(100, 8, 1, true), b(100, 32, 1, true), c(100, 8, 2, true);
  EXPECT_EQ(a.batches(), 13);
  EXPECT_EQ(a.batch(12).size(), 4u);
  EXPECT_EQ(all_rows(a), all_rows(b));
  EXPECT_NE(all_rows(a), all_rows(c));
  const auto first = all_rows(a);
  a.set_epoch(3);
  EXPECT_NE(all_rows(a), first);
  b.set_epoch(2);
  b.set_epoch(3);
  EXPECT_EQ(all_rows(a), all_rows(b));
  a.set_epoch(0);
  EXPECT_EQ(all_rows(a), first);
  auto sorted = first;
  std::sort(sorted.begin(), sorted.end());
  Sampler plain(100, 8, 1, false);
  EXPECT_EQ(sorted, all_rows(plain));
  plain.set_epoch(5);
  EXPECT_EQ(sorted, all_rows(plain));
}

TEST(Sampler, DropLast) {
  EXPECT_EQ(Sampler(10, 4, 0, true, true).batches(), 2);
  EXPECT_EQ(Sampler(8, 4, 0, true).batches(), 2);
  EXPECT_EQ(Sampler(3, 4, 0, true).batches(), 1);
  EXPECT_THROW(Sampler(3, 0, 0, true), Error);
}

TEST(Split, StratifiedAndReproducible) {
  std::vector<int64_t> labels;
  for (int i = 0; i < 1000; ++i) labels.push_back(i < 700 ? 0 : i < 950 ? 1 : 2);
  const Split s = split_rows(1000, 0.1, 7, labels);
  EXPECT_EQ(s.valid.size(), 100u);
  EXPECT_EQ(s.train.size(), 900u);
  std::map<int64_t, int> counts;
  for (int64_t r : s.valid) ++counts[labels[size_t(r)]];
  EXPECT_EQ(counts[0], 70);
  EXPECT_EQ(counts[1], 25);
  EXPECT_EQ(counts[2], 5);
  EXPECT_EQ(split_rows(1000, 0.1, 7, labels).valid, s.valid);
  EXPECT_NE(split_rows(1000, 0.1, 8, labels).valid, s.valid);
  std::vector<int64_t> both = s.train;
  both.insert(both.end(), s.valid.begin(), s.valid.end());
  std::sort(both.begin(), both.end());
  for (int64_t i = 0; i < 1000; ++i) ASSERT_EQ(both[size_t(i)], i);
}

TEST(Split, SmallAndOdd) {
  for (int64_t rows : {2, 3, 7, 10, 33})
    for (double fraction : {0.01, 0.1, 0.5, 0.9, 0.999}) {
      std::vector<int64_t> labels;
      for (int64_t i = 0; i < rows; ++i) labels.push_back(i % 3);
      for (bool with : {false, true}) {
        const Split s =
            with ? split_rows(rows, fraction, 0, labels) : split_rows(rows, fraction, 0);
        EXPECT_GE(s.valid.size(), 1u);
        EXPECT_GE(s.train.size(), 1u);
        EXPECT_EQ(int64_t(s.valid.size() + s.train.size()), rows);
      }
    }
  EXPECT_THROW(split_rows(1, 0.5, 0), Error);
  EXPECT_THROW(split_rows(10, 0, 0), Error);
  EXPECT_THROW(split_rows(10, 1, 0), Error);
}

}  // namespace
}  // namespace onnxtrain
