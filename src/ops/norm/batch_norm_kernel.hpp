// Float kernels of BatchNormalization over [n][c][s] with s > 1: a channel is done as a whole while
// it is in the cache, by vector functions over its stretches of s elements.
#pragma once
#include "core/threads.hpp"
#include "ops/norm/channel_loops.hpp"

namespace onnxtrain::ops {

// Mean and population variance of one channel.
void channel_statistics_f32(const Channels& ch, const float* x, int64_t c, float* mean, float* var);
// y = x * a[c] + b[c]
void channel_affine_f32(const Channels& ch, const float* x, int64_t c, float a, float b, float* y);
// sums over the channel of dy and dy * (x - mean)
void channel_gradient_sums_f32(const Channels& ch, const float* dy, const float* x, int64_t c,
                               float mean, float* sum, float* dot);
// dx = dy * a + (x - mean) * q + s
void channel_gradient_f32(const Channels& ch, const float* dy, const float* x, int64_t c, float a,
                          float mean, float q, float s, float* dx);

}  // namespace onnxtrain::ops
