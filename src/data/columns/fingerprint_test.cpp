#include "data/columns/fingerprint.hpp"

#include <gtest/gtest.h>

namespace onnxtrain {
namespace {

ColumnPtr column(std::vector<float> v, int64_t width) {
  Tensor t(DType::kFloat, {int64_t(v.size()) / width, width});
  std::copy(v.begin(), v.end(), t.as<float>());
  return memory_column(t);
}

TEST(Fingerprint, EveryValueCounts) {
  std::vector<float> v(1000);
  for (size_t i = 0; i < v.size(); ++i) v[i] = float(i);
  const RowHashes a = hash_rows({column(v, 4)});
  EXPECT_EQ(a.rows, 250);
  EXPECT_TRUE(a.all());
  EXPECT_EQ(a.text(), hash_rows({column(v, 4)}).text());
  EXPECT_TRUE(a.text().starts_with("250 rows "));
  v[777] += 1;
  EXPECT_NE(a.text(), hash_rows({column(v, 4)}).text());
  EXPECT_EQ(shared_rows(hash_rows({column(v, 4)}), a), 249);
}

TEST(Fingerprint, RowsOfSeveralColumnsInAnyOrder) {
  const ColumnPtr x = column({1, 2, 3, 4, 5, 6}, 2), y = column({7, 8, 9}, 1);
  const RowHashes all = hash_rows({x, y});
  const auto rows = std::make_shared<const std::vector<int64_t>>(std::vector<int64_t>{2, 0});
  const RowHashes some = hash_rows({subset_column(x, rows), subset_column(y, rows)});
  EXPECT_EQ(some.text(), all.subset({2, 0}).text());
  EXPECT_EQ(shared_rows(some, all), 2);
  EXPECT_EQ(shared_rows(hash_rows({x, column({8, 7, 9}, 1)}), all), 1);
}

}  // namespace
}  // namespace onnxtrain
