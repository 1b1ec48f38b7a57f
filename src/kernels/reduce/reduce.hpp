// Reductions of float data. Sums run over fixed blocks added in a fixed order, so results depend
// on the data and the instruction set only, never on the number of threads.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/threads.hpp"

namespace onnxtrain::simd {

enum class Reduce : uint8_t {
  kSum,
  kMean,
  kSumSquare,
  kSumAbs,
  kMax,
  kMin
};  // NaN wins in kMax/kMin

// Contiguous data, on the calling thread. kMax and kMin of nothing: -inf and +inf.
float reduce(Reduce op, const float* x, int64_t n);
// sum of x[i]*y[i], on the calling thread
float dot(const float* x, const float* y, int64_t n);

// out[outer, inner] = reduction of x[outer, k, inner] over the middle. workspace_bytes of
// reduce_middle_workspace(...), may be 0.
size_t reduce_middle_workspace(int64_t outer, int64_t k, int64_t inner);
void reduce_middle(ThreadPool& pool, Reduce op, const float* x, int64_t outer, int64_t k,
                   int64_t inner, float* out, void* workspace);

}  // namespace onnxtrain::simd
