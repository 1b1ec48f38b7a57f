// Batch normalisation of a [rows, channels] matrix (channels last): statistics, the affine map with
// residual and activation, and the two passes of the gradient. Rows are cut into fixed chunks whose
// sums are combined in order, so the number of threads does not matter.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/threads.hpp"

namespace onnxtrain::simd {

struct NormShape {
  int64_t rows = 0, channels = 0;
  int64_t chunk_rows() const;
  int64_t chunks() const { return (rows + chunk_rows() - 1) / chunk_rows(); }
  // Bytes of scratch for the sums of the chunks.
  size_t workspace() const { return size_t(2 * chunks() * channels) * sizeof(float); }
};

enum class NormAct : uint8_t { kNone, kRelu, kClip };
struct NormActivation {
  NormAct kind = NormAct::kNone;
  float low = 0, high = 0;  // of kClip
};

// Mean and population variance of every channel.
void norm_statistics(ThreadPool& pool, const NormShape& s, const float* x, void* workspace,
                     float* mean, float* var);

// y = act(x * a + b + residual); residual may be null, y may be x or residual.
void norm_apply(ThreadPool& pool, const NormShape& s, const float* x, const float* a,
                const float* b, const float* residual, NormActivation act, float* y);

// The gradient. g = dy where the activation lets it through, which is seen from y when given,
// otherwise from x * a + b.
struct NormGrad {
  const float* dy = nullptr;
  const float* x = nullptr;
  const float* y = nullptr;
  const float *a = nullptr, *b = nullptr, *mean = nullptr;
  NormActivation act;
};
// sum[c] = sum of g, dot[c] = sum of g * (x - mean); g itself is stored when not null (may be dy).
void norm_grad_sums(ThreadPool& pool, const NormShape& s, const NormGrad& n, void* workspace,
                    float* g, float* sum, float* dot);
// dx = g * a + (x * q + shift); dx may be dy or x. With n.act.kind = kNone, n.dy is g.
void norm_grad_apply(ThreadPool& pool, const NormShape& s, const NormGrad& n, const float* q,
                     const float* shift, float* dx);

}  // namespace onnxtrain::simd
