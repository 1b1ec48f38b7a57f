// Telling data apart by content: whether a run goes on with the data it began with, and whether
// validation rows are training rows.
#pragma once
#include <string>
#include <vector>

#include "data/columns/column.hpp"

namespace onnxtrain {

// One number per row over all columns, as they are fed. More than kHashedBytes of data: every n-th
// row only. Images that are decoded on demand count by name and size.
constexpr uint64_t kHashedBytes = uint64_t(256) << 20;
struct RowHashes {
  std::vector<uint64_t> hashes;
  int64_t rows = 0;
  bool all() const { return int64_t(hashes.size()) == rows; }
  RowHashes subset(const std::vector<int64_t>& rows) const;  // of all(); otherwise nothing
  // "130 rows 0123456789abcdef"
  std::string text() const;
};
RowHashes hash_rows(const std::vector<ColumnPtr>& columns);

// How many of `some` are rows of `all`, too.
int64_t shared_rows(const RowHashes& some, const RowHashes& all);

}  // namespace onnxtrain
