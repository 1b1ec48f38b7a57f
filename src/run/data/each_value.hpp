// Every number of a column, one after the other.
#pragma once
#include <vector>

#include "data/columns/column.hpp"

namespace onnxtrain::run {

inline constexpr uint64_t kScannedBytes = uint64_t(64)
                                          << 20;  // of a target; larger ones: some rows

// Reads the column in pieces and calls visit(value) for every element.
template <class Visit>
void for_each_value(const Column& c, Visit&& visit) {
  const auto every = int64_t(uint64_t(c.rows()) * c.row_bytes() / kScannedBytes) + 1;
  constexpr size_t kPiece = 1024;
  Shape shape{int64_t(kPiece), c.row_elements()};
  std::vector<int64_t> rows;
  for (int64_t row = 0; row < c.rows();) {
    rows.clear();
    for (; row < c.rows() && rows.size() < kPiece; row += every) rows.push_back(row);
    shape[0] = int64_t(rows.size());
    Tensor block(c.dtype(), shape);
    c.read(rows, block.data());
    for (double v : block.to_doubles()) visit(v);
  }
}

}  // namespace onnxtrain::run
