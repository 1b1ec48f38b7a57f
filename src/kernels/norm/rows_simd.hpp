// The processor-specific pieces of rows.hpp: each handles a range of rows.
#pragma once
#include "kernels/norm/rows.hpp"

namespace onnxtrain::simd {

struct RowKernels {
  void (*softmax)(const float* x, float* y, int64_t rows, int64_t n, float scale);
  void (*softmax_grad)(const float* dy, const float* y, float* dx, int64_t rows, int64_t n,
                       float scale);
  bool (*score_softmax)(float* x, int64_t n, const ScoreMask& m, EmptyRow empty, float& top,
                        float& inverse);
  bool (*score_softmax_again)(float* x, int64_t n, const ScoreMask& m, float top, float inverse);
  void (*dropped_softmax_grad)(float* p, float* dp, const float* u, int64_t n, float ratio,
                               float scale);
  void (*close_row)(float* x, int64_t n, const ScoreMask& m);
  void (*log_softmax)(const float* x, float* y, int64_t rows, int64_t n);
  void (*log_softmax_grad)(const float* dy, const float* y, float* dx, int64_t rows, int64_t n);
  // grad_each: what d loss is multiplied by (grad_scale over the divisor of the mean)
  void (*cross_entropy)(const CrossEntropy& c, int64_t row0, int64_t row1, float grad_each);
  void (*norm)(const RowNorm& r, const float* x, float* y, float* mean, float* rstd, int64_t rows);
  // dscale, dbias: [n], set (not added to); null when not wanted
  void (*norm_grad)(const RowNorm& r, const float* dy, const float* x, const float* mean,
                    const float* rstd, float* dx, float* dscale, float* dbias, int64_t rows);
};
const RowKernels& row_kernels();

}  // namespace onnxtrain::simd
