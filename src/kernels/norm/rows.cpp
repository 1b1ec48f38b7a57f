// How the row kernels are cut into tasks: groups of rows, by the problem only.
#include <algorithm>

#include "kernels/norm/rows_simd.hpp"
#include "kernels/reduce/reduce_simd.hpp"

namespace onnxtrain::simd {
namespace {

// About 8K elements per task: some microseconds.
int64_t rows_per_task(int64_t n) { return std::max<int64_t>(1, 8192 / std::max<int64_t>(n, 1)); }

// Rows whose dscale and dbias are summed together; at most 64 groups.
int64_t rows_per_group(const RowNorm& r) {
  return std::max({rows_per_task(r.n), (r.rows + 63) / 64, int64_t(1)});
}
int64_t groups(const RowNorm& r) { return (r.rows + rows_per_group(r) - 1) / rows_per_group(r); }

}  // namespace

void softmax(ThreadPool& pool, const float* x, float* y, int64_t rows, int64_t n, float scale) {
  parallel_for(pool, rows, rows_per_task(n), [&](int64_t b, int64_t e) {
    row_kernels().softmax(x + b * n, y + b * n, e - b, n, scale);
  });
}

void softmax_grad(ThreadPool& pool, const float* dy, const float* y, float* dx, int64_t rows,
                  int64_t n, float scale) {
  parallel_for(pool, rows, rows_per_task(n), [&](int64_t b, int64_t e) {
    row_kernels().softmax_grad(dy + b * n, y + b * n, dx + b * n, e - b, n, scale);
  });
}

bool score_softmax(float* x, int64_t n, const ScoreMask& m, EmptyRow empty, float& top,
                   float& inverse) {
  return row_kernels().score_softmax(x, n, m, empty, top, inverse);
}
bool score_softmax_again(float* x, int64_t n, const ScoreMask& m, float top, float inverse) {
  return row_kernels().score_softmax_again(x, n, m, top, inverse);
}
void dropped_softmax_grad(float* p, float* dp, const float* u, int64_t n, float ratio,
                          float scale) {
  row_kernels().dropped_softmax_grad(p, dp, u, n, ratio, scale);
}
void close_row(float* x, int64_t n, const ScoreMask& m) { row_kernels().close_row(x, n, m); }

void log_softmax(ThreadPool& pool, const float* x, float* y, int64_t rows, int64_t n) {
  parallel_for(pool, rows, rows_per_task(n), [&](int64_t b, int64_t e) {
    row_kernels().log_softmax(x + b * n, y + b * n, e - b, n);
  });
}

void log_softmax_grad(ThreadPool& pool, const float* dy, const float* y, float* dx, int64_t rows,
                      int64_t n) {
  parallel_for(pool, rows, rows_per_task(n), [&](int64_t b, int64_t e) {
    row_kernels().log_softmax_grad(dy + b * n, y + b * n, dx + b * n, e - b, n);
  });
}

float softmax_cross_entropy(ThreadPool& pool, const CrossEntropy& c) {
  double divisor = 1;
  if (c.reduction == LossReduction::kMean) {
    divisor = 0;
    for (int64_t r = 0; r < c.rows; ++r) {
      if (c.has_ignore && c.labels[r] == c.ignore_index) continue;
      divisor += c.weights ? double(c.weights[c.labels[r]]) : 1.0;
    }
  }
  // No row counted: the mean is 0/0, the gradient of every row 0.
  const float each = divisor == 0 ? 0.0f : float(double(c.grad_scale) / divisor);
  parallel_for(pool, c.rows, rows_per_task(c.n),
               [&](int64_t b, int64_t e) { row_kernels().cross_entropy(c, b, e, each); });
  if (c.reduction == LossReduction::kNone) return 0;
  double sum = 0;
  for (int64_t r = 0; r < c.rows; ++r) sum += double(c.row_loss[r]);
  return float(sum / divisor);
}

void row_norm(ThreadPool& pool, const RowNorm& r, const float* x, float* y, float* mean,
              float* rstd) {
  parallel_for(pool, r.rows, rows_per_task(r.n), [&](int64_t b, int64_t e) {
    row_kernels().norm(r, x + b * r.n, y + b * r.n, mean ? mean + b : nullptr,
                       rstd ? rstd + b : nullptr, e - b);
  });
}

size_t row_norm_grad_workspace(const RowNorm& r) {
  return size_t(2 * groups(r) * r.n) * sizeof(float);
}

void row_norm_grad(ThreadPool& pool, const RowNorm& r, const float* dy, const float* x,
                   const float* mean, const float* rstd, float* dx, float* dscale, float* dbias,
                   void* workspace) {
  const int64_t count = groups(r), each = rows_per_group(r), n = r.n;
  float* scale_parts = static_cast<float*>(workspace);
  float* bias_parts = scale_parts + count * n;
  parallel_for(pool, r.rows, each, [&](int64_t b, int64_t e) {
    const int64_t g = b / each;
    row_kernels().norm_grad(r, dy + b * n, x + b * n, mean ? mean + b : nullptr, rstd + b,
                            dx + b * n, dscale ? scale_parts + g * n : nullptr,
                            dbias ? bias_parts + g * n : nullptr, e - b);
  });
  const auto sum = reduce_kernels().rows[size_t(Reduce::kSum)];
  if (dscale) sum(scale_parts, count, n, n, dscale);
  if (dbias) sum(bias_parts, count, n, n, dbias);
}

}  // namespace onnxtrain::simd
