// How index tensors address data.
#include "ops/common/indices.hpp"

namespace onnxtrain::ops {

ElementLanes::ElementLanes(const Shape& data, const Shape& indices, int64_t axis) {
  Shape ds = strides_of(data), is = strides_of(indices);
  size = data[size_t(axis)];
  stride = ds[size_t(axis)];
  along_ = indices[size_t(axis)];
  index_stride_ = is[size_t(axis)];
  for (size_t d = 0; d < data.size(); ++d) {
    if (int64_t(d) == axis) continue;
    dims_.push_back(indices[d]);
    data_.push_back(ds[d]);
    index_.push_back(is[d]);
    lanes_ *= indices[d];
  }
}

void check_element_indices(const Shape& data, const Shape& indices, int64_t axis, const char* op) {
  bool fits = data.size() == indices.size();
  for (size_t d = 0; d < data.size() && fits; ++d)
    fits = int64_t(d) == axis || indices[d] <= data[d];
  if (!fits)
    model_error("OT1134", cat(op, " along axis ", axis, ": indices of shape ", to_string(indices),
                              " do not fit ", to_string(data)));
}

NdIndices::NdIndices(const Shape& data, size_t batch, size_t depth) {
  Shape s = strides_of(data);
  for (size_t d = batch; d < batch + depth; ++d) {
    sizes.push_back(data[d]);
    strides.push_back(s[d]);
  }
  block = product(data, batch + depth, data.size());
}

void NdIndices::check(const IndexReader& ix, int64_t tuples, const char* op) const {
  int64_t depth = int64_t(sizes.size());
  for (int64_t k = 0; k < tuples * depth; ++k) {
    int64_t v = ix[k], size = sizes[size_t(k % depth)];
    if (v < -size || v >= size)
      data_error("OT2110", cat(op, ": index ", v, " (tuple ", k / depth,
                               ") is out of range for a dimension of size ", size));
  }
}

}  // namespace onnxtrain::ops
