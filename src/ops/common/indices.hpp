// Index tensors (int32 or int64) as kernels read them: checked before any memory is touched.
#pragma once
#include <algorithm>

#include "op/op.hpp"

namespace onnxtrain::ops {

// Reads index i of either type.
struct IndexReader {
  const void* data;
  bool wide;
  IndexReader(const void* data, DType t) : data(data), wide(t == DType::kInt64) {}
  int64_t operator[](int64_t i) const {
    return wide ? static_cast<const int64_t*>(data)[i]
                : int64_t(static_cast<const int32_t*>(data)[i]);
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
      data_error("OT2110", cat(op, ": index ", v, " (number ", i,
                               ") is out of range for a dimension of size ", size));
  }
}

// GatherElements, ScatterElements: each index element i belongs to data element
// base(i) + index * stride, where base follows from the other coordinates of i.
struct ElementLanes {
  ElementLanes(const Shape& data, const Shape& indices, int64_t axis);
  int64_t size, stride;  // of the data along the axis
  int64_t total() const { return lanes_ * along_; }
  // Calls f(i, base) for every index element. Elements that differ only along the axis are visited
  // in order by one task, so scattering is the same for any number of threads.
  template <class F>
  void run(ThreadPool& pool, F&& f) const {
    int64_t grain = std::max<int64_t>(1, 16 * 1024 / std::max<int64_t>(1, along_));
    parallel_for(pool, lanes_, grain, [&](int64_t b, int64_t e) {
      for (int64_t l = b; l < e; ++l) {
        int64_t base = 0, first = 0, rest = l;
        for (size_t d = dims_.size(); d-- > 0;) {
          int64_t k = rest % dims_[d];
          rest /= dims_[d];
          base += k * data_[d];
          first += k * index_[d];
        }
        for (int64_t a = 0; a < along_; ++a) f(first + a * index_stride_, base);
      }
    });
  }

 private:
  Shape dims_, data_, index_;  // the other dimensions: sizes of the indices, strides of both
  int64_t lanes_ = 1, along_ = 1, index_stride_ = 1;
};
// A model error unless the indices fit into the data in every dimension but the axis.
void check_element_indices(const Shape& data, const Shape& indices, int64_t axis, const char* op);

// GatherND, ScatterND: tuples of `depth` indices into the dimensions after `batch`, each naming a
// block of the remaining ones.
struct NdIndices {
  NdIndices(const Shape& data, size_t batch, size_t depth);
  int64_t block;
  int64_t offset(const IndexReader& ix, int64_t tuple) const {
    int64_t at = 0;
    for (size_t d = 0; d < sizes.size(); ++d)
      at += ix.at(tuple * int64_t(sizes.size()) + int64_t(d), sizes[d]) * strides[d];
    return at;
  }
  void check(const IndexReader& ix, int64_t tuples, const char* op) const;
  Shape sizes, strides;
};

}  // namespace onnxtrain::ops
