// Gradient of the weights of a channels-last convolution with one group, as many small matrix
// products: for every tap, dw[m][c] = sum over pixels of dy[pixel][m] * x[pixel + tap][c].
//
// x and dy are packed once per chunk of output rows and serve all taps. 1x1 convolutions of few
// channels read them in place, in parts of the pixels whose sums are added in order. Nothing
// depends on the number of threads.
#pragma once
#include <array>
#include <memory>
#include <vector>

#include "kernels/conv/conv_ref.hpp"

namespace onnxtrain::simd {

// A stretch of one output row: where its packed x and dy begin.
struct GradWRow {
  int64_t x, dy;
};

class ConvGradW {
 public:
  // False where few inputs leave the vectors empty, or for more than 3 dimensions.
  static bool fits(const kernels::ConvShape& s);
  explicit ConvGradW(const kernels::ConvShape& s);
  size_t workspace() const { return workspace_; }
  // x [N,D...,C], dy [N,D...,M] -> dw [M,C,k...]
  void run(const float* dy, const float* x, float* dw, void* workspace, ThreadPool& pool) const;

 private:
  using Dims = std::array<int64_t, 3>;
  struct Tap {
    int64_t count;               // outputs per row
    std::vector<GradWRow> rows;  // those that the tap reaches
  };
  struct Chunk {
    int64_t x_row, x_rows, dy_row, dy_rows;  // rows of the tensors that are packed
    std::vector<Tap> taps;
  };
  void add_chunk(int64_t image, int64_t images, int64_t begin, int64_t end);
  Tap make_tap(const Chunk& c, int64_t tap, int64_t image, int64_t images, int64_t begin,
               int64_t end) const;
  bool choose_direct();
  void run_direct(const float* dy, const float* x, float* dw, float* sums, ThreadPool& pool) const;
  void direct_part(int64_t part, const float* a, const float* b, float* sums) const;
  void pack(const Chunk& c, int64_t task, const float* dy, const float* x, float* xp,
            float* dyp) const;
  void compute(const Chunk& c, bool first, int64_t task, const float* xp, const float* dyp,
               float* sums) const;
  void finish(int64_t begin, int64_t end, const float* sums, float* dw) const;

  int64_t batch_, in_channels_, out_channels_;
  Dims in_, out_, kernel_, strides_, dilations_, pads_;
  int64_t taps_, tiles_, panels_;             // of channels: mr outputs, nr inputs each
  int64_t parts_m_ = 1, parts_c_ = 1;         // tasks of one tap
  int64_t direct_parts_ = 0;                  // > 0: in place; parts of the pixels
  bool direct_swapped_ = false;               // rows are inputs, columns outputs
  bool in_place_ = false;                     // the sums are the result
  int64_t x_capacity_ = 0, dy_capacity_ = 0;  // pixels
  std::vector<Chunk> chunks_;
  size_t workspace_ = 0;
};

}  // namespace onnxtrain::simd
