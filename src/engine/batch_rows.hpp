// A step needs rows.
#pragma once
#include <vector>

#include "core/error.hpp"
#include "graph/graph.hpp"

namespace onnxtrain {

// The first dimension of this input is open: it may count rows.
inline bool has_open_rows(const ValueDef& input) {
  const TypeInfo& t = input.type;
  return t.is_tensor() && (!t.shape || (!t.shape->empty() && !(*t.shape)[0].known()));
}

// By input, the dimension that counts the rows of a batch; -1: it has no rows. That is the first
// one where it is open, unless names of dimensions say otherwise: x [time, batch, 8] beside label
// [batch] has its rows along dimension 1, and a mask [time, time] has none.
std::vector<int> row_axes(const std::vector<ValueDef>& inputs);

[[noreturn]] inline void no_rows_in_batch() {
  data_error("OT2101", "a batch without rows", "leave empty batches out");
}

// Throws OT2101 when all inputs that take rows have none. rows(k): of input k; -1: not given, or a
// single number.
template <class Rows>
void require_some_rows(const std::vector<ValueDef>& inputs, const Rows& rows) {
  bool empty = false;
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (!has_open_rows(inputs[k])) continue;
    const int64_t n = rows(k);
    if (n > 0) return;
    empty |= n == 0;
  }
  if (empty) no_rows_in_batch();
}

}  // namespace onnxtrain
