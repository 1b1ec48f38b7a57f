// Kernels over the rows of a [rows, n] float matrix, forward and backward, threaded over fixed
// groups of rows. Sums over rows (dscale, dbias) are added in a fixed order.
#pragma once
#include <cstddef>
#include <cstdint>

#include "core/threads.hpp"

namespace onnxtrain::simd {

// y = softmax(scale * x) per row; y may be x.
void softmax(ThreadPool& pool, const float* x, float* y, int64_t rows, int64_t n, float scale = 1);
// dx = scale * y * (dy - sum(dy * y)); dx may be dy.
void softmax_grad(ThreadPool& pool, const float* dy, const float* y, float* dx, int64_t rows,
                  int64_t n, float scale = 1);
// One row of attention scores. What its mask does to it: `bias` is added, or scores where `open`
// is not open_is are replaced by `fill`; at most one of the two.
struct ScoreMask {
  const float* bias = nullptr;
  const uint8_t* open = nullptr;
  bool open_is = true;
  float fill = 0;
};
// A row of which nothing is left: NaN, as Softmax has it; zeros where all is -infinity (NaN of the
// scores stays); zeros for any NaN.
enum class EmptyRow : uint8_t { kNan, kZero, kNeverNan };
// x becomes its softmax under the mask. True when places that `fill` closes have weight. top and
// inverse: of the row's greatest score and sum, 0 for a row of zeros; with them
// score_softmax_again makes the same bits in one pass.
bool score_softmax(float* x, int64_t n, const ScoreMask& m, EmptyRow empty, float& top,
                   float& inverse);
bool score_softmax_again(float* x, int64_t n, const ScoreMask& m, float top, float inverse);
// Back through dropout (kept where u >= ratio, times scale) and softmax, in place:
// dp becomes p * (d - sum(p * d)) with d = dropped dp; then p becomes dropped p.
void dropped_softmax_grad(float* p, float* dp, const float* u, int64_t n, float ratio, float scale);
// x = 0 where the mask closes.
void close_row(float* x, int64_t n, const ScoreMask& m);

// y = x - log(sum(exp(x))) per row; y may be x.
void log_softmax(ThreadPool& pool, const float* x, float* y, int64_t rows, int64_t n);
// dx = dy - exp(y) * sum(dy); dx may be dy.
void log_softmax_grad(ThreadPool& pool, const float* dy, const float* y, float* dx, int64_t rows,
                      int64_t n);

enum class LossReduction : uint8_t { kNone, kSum, kMean };

// Softmax cross entropy against class numbers. A row whose label is ignore_index counts nothing;
// labels outside 0..n-1 must have been refused before. kMean divides by the sum of the counted
// rows' class weights.
struct CrossEntropy {
  const float* x = nullptr;         // [rows, n]
  const int64_t* labels = nullptr;  // [rows]
  const float* weights = nullptr;   // [n] or null
  int64_t rows = 0, n = 0;
  bool has_ignore = false;
  int64_t ignore_index = 0;
  LossReduction reduction = LossReduction::kMean;
  float* row_loss = nullptr;  // [rows], required: also the workspace of the sum
  float* log_prob = nullptr;  // [rows, n] or null
  float* grad = nullptr;      // [rows, n] or null: grad_scale * d loss / dx; may be x
  float grad_scale = 1;
};
// Loss and gradient in one pass; returns the reduced loss (0 for kNone).
float softmax_cross_entropy(ThreadPool& pool, const CrossEntropy& c);

// Normalization over rows. rms: no mean is taken away (RMSNormalization), `mean` is unused.
struct RowNorm {
  int64_t rows = 0, n = 0;
  float epsilon = 1e-5f;
  bool rms = false;
  const float* scale = nullptr;  // [n] or null
  const float* bias = nullptr;   // [n] or null (forward only)
};
// y = (x - mean) / sqrt(var + epsilon) * scale + bias. mean, rstd: [rows] or null.
void row_norm(ThreadPool& pool, const RowNorm& r, const float* x, float* y, float* mean,
              float* rstd);
// dx from dy, x and the saved mean and rstd; dscale and dbias ([n]) may be null. dx may be dy.
size_t row_norm_grad_workspace(const RowNorm& r);
void row_norm_grad(ThreadPool& pool, const RowNorm& r, const float* dy, const float* x,
                   const float* mean, const float* rstd, float* dx, float* dscale, float* dbias,
                   void* workspace);

}  // namespace onnxtrain::simd
