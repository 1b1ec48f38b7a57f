// The processor-specific pieces of winograd.cpp: the four transforms of F(2x2, 3x3) and their
// adjoints, one table per instruction set. A transformed tile has 16 points; point p of a value is
// `points` floats behind point p - 1.
#pragma once
#include <cstdint>

namespace onnxtrain::simd {

struct WinogradKernels {
  // 4x4 pixels of `channels` channels -> 16 points.
  void (*input)(const float* x, int64_t row, int64_t column, int64_t channels, float* v,
                int64_t points);
  // 16 points -> the upper left rows x columns (at most 2x2) pixels, plus bias when not null.
  void (*output)(const float* m, int64_t points, int64_t channels, const float* bias, float* y,
                 int64_t row, int64_t column, int rows, int columns);
  // Adjoint of output: the upper left rows x columns pixels, the others being 0 -> 16 points.
  void (*output_adjoint)(const float* dy, int64_t row, int64_t column, int rows, int columns,
                         int64_t channels, float* m, int64_t points);
  // 3x3 weights of `lanes` (at most `width`) channels, `lane` floats apart, for each of `count`
  // k, `k` floats apart -> u [count][width] at 16 points, zero filled. flip: turned by 180 degrees.
  void (*weights)(const float* w, int64_t lane, int64_t k, int64_t count, int64_t lanes,
                  int64_t width, bool flip, float* u, int64_t points);
  // Adjoint of weights: 16 points of `channels` channels -> dw [channels][3][3].
  void (*weights_adjoint)(const float* u, int64_t points, int64_t channels, float* dw);
};

const WinogradKernels& winograd_kernels();

}  // namespace onnxtrain::simd
