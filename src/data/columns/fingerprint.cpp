// Hashes of rows.
#include "data/columns/fingerprint.hpp"

#include <algorithm>
#include <cstdio>
#include <unordered_set>

#include "core/error.hpp"
#include "core/random.hpp"

namespace onnxtrain {

namespace {

constexpr size_t kPiece = 256;  // rows that are read together

void mix_in(const Column& c, std::span<const int64_t> rows, uint64_t* hashes,
            std::vector<char>& space) {
  if (c.is_decoded() || c.dtype() == DType::kString) {
    for (size_t i = 0; i < rows.size(); ++i) {
      const uint64_t id = c.identity(rows[i]);
      hashes[i] = hash64(&id, sizeof id, hashes[i]);
    }
    return;
  }
  space.resize(std::max<size_t>(1, rows.size() * c.row_bytes()));
  c.read(rows, space.data());
  for (size_t i = 0; i < rows.size(); ++i)
    hashes[i] = hash64(space.data() + i * c.row_bytes(), c.row_bytes(), hashes[i]);
}

}  // namespace

std::string RowHashes::text() const {
  char digits[20];
  std::snprintf(digits, sizeof digits, "%016llx",
                static_cast<unsigned long long>(
                    hash64(hashes.data(), hashes.size() * sizeof(uint64_t), uint64_t(rows))));
  return cat(rows, rows == 1 ? " row " : " rows ", digits);
}

RowHashes RowHashes::subset(const std::vector<int64_t>& chosen) const {
  RowHashes out;
  out.rows = int64_t(chosen.size());
  for (int64_t row : chosen)
    if (all()) out.hashes.push_back(hashes[size_t(row)]);
  return out;
}

RowHashes hash_rows(const std::vector<ColumnPtr>& columns) {
  RowHashes out;
  if (columns.empty()) return out;
  out.rows = columns[0]->rows();
  uint64_t row_bytes = 1;
  for (const ColumnPtr& c : columns)
    row_bytes += c->is_decoded() || c->dtype() == DType::kString ? 64 : c->row_bytes();
  const uint64_t most = std::max<uint64_t>(1, kHashedBytes / row_bytes);
  const auto every = int64_t(std::max<uint64_t>(1, (uint64_t(out.rows) + most - 1) / most));
  std::vector<char> space;
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < out.rows;) {
    rows.clear();
    for (; row < out.rows && rows.size() < kPiece; row += every) rows.push_back(row);
    out.hashes.resize(out.hashes.size() + rows.size(), 0);
    for (const ColumnPtr& c : columns)
      mix_in(*c, rows, &out.hashes[out.hashes.size() - rows.size()], space);
  }
  return out;
}

int64_t shared_rows(const RowHashes& some, const RowHashes& all) {
  const std::unordered_set<uint64_t> known(all.hashes.begin(), all.hashes.end());
  return std::count_if(some.hashes.begin(), some.hashes.end(),
                       [&](uint64_t h) { return known.count(h) > 0; });
}

}  // namespace onnxtrain
