// core/random.hpp's counter-based numbers, many at a time, and dropout made of them.
#pragma once
#include <cstdint>

namespace onnxtrain::simd {

// The same bits as onnxtrain::philox_uniform.
void philox_uniform(uint64_t seed, uint64_t stream, uint64_t step, uint64_t first, int64_t n,
                    float* out);

// keep[i] = u[i] >= ratio; y[i] = keep[i] ? x[i] * scale : 0. u becomes 0 or 1; keep may be null, y
// may be x.
void drop(const float* x, float* y, float* u, uint8_t* keep, int64_t n, float ratio, float scale);

}  // namespace onnxtrain::simd
