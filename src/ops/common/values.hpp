// Helpers of operators that run on values: ownership, slices and joins of tensors of any type.
#pragma once
#include "op/op.hpp"

namespace onnxtrain::ops {

// The value with all its memory owned: what only borrows the arena is copied.
Value keep(const Value& v);
Tensor keep(const Tensor& t);

// Input i as a sequence; a model error when it is something else.
const Sequence& sequence_in(const ValueCtx& c, int i);
// One integer (int32 or int64) of input i, or `def` when it is omitted.
int64_t int_in(const ValueCtx& c, int i, int64_t def);
bool bool_of(const Value& v, const char* what);
const Tensor& tensor_of(const Value& v, const char* what);

// n elements; strings are assigned, everything else is moved as bytes.
void copy_elements(void* to, const void* from, int64_t n, DType t);

// x[..., begin:begin+count, ...] along axis; without a copy when axis is the first.
Tensor slice(const Tensor& x, int64_t axis, int64_t begin, int64_t count);
// Joins along an existing axis (0 <= axis < rank). At least one part; all of one type.
Tensor concat(const std::vector<Tensor>& parts, int64_t axis, const char* what);
// Joins along a new axis (0 <= axis <= rank); `backwards` puts the last part first.
Tensor stack(const std::vector<Tensor>& parts, int64_t axis, bool backwards, const char* what);

}  // namespace onnxtrain::ops
