// Models whose file fixes the number of rows that they take at once.
#pragma once
#include "core/tensor.hpp"
#include "model/model.hpp"

namespace onnxtrain::run {

// The batch size to train with: what was asked for (0: nothing), the size that the file fixes, or
// 32. Throws OT2115 when the file fixes another one than was asked for.
int64_t batch_size_for(const Model& m, int64_t asked);

// The tensor with its last row repeated up to `rows`; the first rows of a result.
Tensor filled_up(const Tensor& t, int64_t rows);
Tensor first_rows(const Tensor& t, int64_t rows);

}  // namespace onnxtrain::run
