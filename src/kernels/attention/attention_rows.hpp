// Rows of attention scores for kernels that are written once for float and double: softmax under a
// mask and dropout, forward and backward.
#pragma once
#include <algorithm>
#include <cmath>

#include "core/random.hpp"
#include "kernels/norm/rows.hpp"
#include "kernels/random/philox.hpp"

namespace onnxtrain::kernels {

template <class T>
struct RowMask {
  const T* bias = nullptr;
  const uint8_t* open = nullptr;
  bool open_is = true;
  T fill = 0;
  bool closed(int64_t j) const { return open && (open[j] != 0) != open_is; }
};

inline simd::ScoreMask simd_mask(const RowMask<float>& m) {
  return {m.bias, m.open, m.open_is, m.fill};
}

// simd::score_softmax and its companions.
inline bool score_softmax(float* x, int64_t n, const RowMask<float>& m, simd::EmptyRow empty,
                          float* stats) {
  return simd::score_softmax(x, n, simd_mask(m), empty, stats[0], stats[1]);
}
inline bool score_softmax_again(float* x, int64_t n, const RowMask<float>& m, const float* stats) {
  return simd::score_softmax_again(x, n, simd_mask(m), stats[0], stats[1]);
}
inline bool score_softmax_again(double* x, int64_t n, const RowMask<double>& m,
                                const double* stats) {
  for (int64_t j = 0; j < n; ++j) {
    const double v = m.closed(j) ? m.fill : m.bias ? x[j] + m.bias[j] : x[j];
    x[j] = stats[1] == 0 ? 0 : std::exp(v - stats[0]) * stats[1];
  }
  return stats[1] != 0 && m.open && m.fill - stats[0] > -750;
}
inline bool score_softmax(double* x, int64_t n, const RowMask<double>& m, simd::EmptyRow empty,
                          double* stats) {
  double top = -INFINITY, sum = 0;
  bool nan = false;
  for (int64_t j = 0; j < n; ++j) {
    const double v = m.closed(j) ? m.fill : m.bias ? x[j] + m.bias[j] : x[j];
    top = std::max(top, v);
    nan |= std::isnan(v);
  }
  for (int64_t j = 0; j < n; ++j)
    sum += std::exp((m.closed(j) ? m.fill : m.bias ? x[j] + m.bias[j] : x[j]) - top);
  const bool zeros = empty == simd::EmptyRow::kZero
                         ? top == -INFINITY && !nan
                         : empty == simd::EmptyRow::kNeverNan && !(sum > 0);
  stats[0] = top, stats[1] = zeros ? 0 : 1 / sum;
  return score_softmax_again(x, n, m, stats);
}

inline void close_row(float* x, int64_t n, const RowMask<float>& m) {
  simd::close_row(x, n, simd_mask(m));
}
inline void close_row(double* x, int64_t n, const RowMask<double>& m) {
  for (int64_t j = 0; j < n; ++j)
    if (m.closed(j)) x[j] = 0;
}

// What was kept goes on times this.
inline float drop_scale(float ratio) { return ratio < 1 ? 1.0f / (1.0f - ratio) : 0.0f; }

inline void drop_row(float* x, float* u, int64_t n, float ratio) {
  simd::drop(x, x, u, nullptr, n, ratio, drop_scale(ratio));
}
inline void drop_row(double* x, float* u, int64_t n, float ratio) {
  const double scale = ratio < 1 ? 1 / (1 - double(ratio)) : 0;
  for (int64_t j = 0; j < n; ++j) x[j] = u[j] >= ratio ? x[j] * scale : 0;
}

inline void dropped_softmax_grad(float* p, float* dp, const float* u, int64_t n, float ratio) {
  simd::dropped_softmax_grad(p, dp, u, n, ratio, drop_scale(ratio));
}
inline void dropped_softmax_grad(double* p, double* dp, const float* u, int64_t n, float ratio) {
  const double scale = ratio < 1 ? 1 / (1 - double(ratio)) : 0;
  double dot = 0;
  for (int64_t j = 0; j < n; ++j) {
    dp[j] = u[j] >= ratio ? dp[j] * scale : 0;
    dot += p[j] * dp[j];
  }
  for (int64_t j = 0; j < n; ++j) {
    dp[j] = p[j] * (dp[j] - dot);
    p[j] = u[j] >= ratio ? p[j] * scale : 0;
  }
}

// Numbers first .. first + n of a stream, the same as philox_uniform's; `space` holds n +
// kDropSlack. Whole groups from a multiple of four: the vector code takes them.
inline constexpr int64_t kDropSlack = 3 + 64;
inline float* drop_numbers(uint64_t seed, uint64_t stream, uint64_t step, int64_t first, int64_t n,
                           float* space) {
  const int64_t skip = first % 4, count = (n + skip + 63) / 64 * 64;
  simd::philox_uniform(seed, stream, step, uint64_t(first - skip), count, space);
  return space + skip;
}

}  // namespace onnxtrain::kernels
