// Are all numbers of a tensor finite? One pass that also gives the sum of squares, so that the
// check before state is written costs one read of the gradients.
#pragma once
#include "core/tensor.hpp"
#include "core/threads.hpp"

namespace onnxtrain {

// What a tensor holds besides finite numbers; a mask.
enum NotFinite : unsigned { kAllFinite = 0, kHasNan = 1, kHasPlusInf = 2, kHasMinusInf = 4 };
unsigned not_finite(const Tensor& t);

// Sum of squares in double, added in an order that depends on n only; finite exactly when every
// element is (float and narrower types; for double a sum that overflows is taken for not finite
// only if an element is). Types without such values give 0.
double sum_of_squares(DType dtype, const void* data, int64_t n, ThreadPool& pool);

}  // namespace onnxtrain
