// Index tensors (int32 or int64) as kernels read them: checked before any memory is touched.
#pragma once
#include "op/op.hpp"

namespace onnxtrain::ops {

// Reads index i of either type.
struct IndexReader {
  const void* data;
  bool wide;
  IndexReader(const void* data, DType t) : data(data), wide(t == DType::kInt64) {}
  int64_t operator[](int64_t i) const {
    return wide ? static_cast<const int64_t*>(data)[i] : int64_t(static_cast<const int32_t*>(data)[i]);
  }
  // Negative indices count from the end.
  int64_t at(int64_t i, int64_t size) const {
    int64_t v = (*this)[i];
    return v < 0 ? v + size : v;
  }
};

inline void require_index_type(DType t, const char* op) {
  if (t != DType::kInt64 && t != DType::kInt32) unsupported_dtype(t, op);
}

// A model error that names the first index outside [-size, size).
inline void check_indices(const IndexReader& ix, int64_t n, int64_t size, const char* op) {
  for (int64_t i = 0; i < n; ++i) {
    int64_t v = ix[i];
    if (v < -size || v >= size)
      data_error("OT2110", cat(op, ": index ", v, " (number ", i, ") is out of range for a dimension of size ", size));
  }
}

}  // namespace onnxtrain::ops
