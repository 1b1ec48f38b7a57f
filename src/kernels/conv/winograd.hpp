// Channels-last 3x3 convolutions of stride 1 by Winograd's F(2x2, 3x3): 2x2 outputs are made from
// 4x4 inputs with 16 products per pair of channels in place of 36. Inputs and weights are
// transformed by sums and halves, 16 GEMMs follow, and sums make the outputs; the
// rounding errors are those of a direct convolution (docs/decisions/0045-convolution-kernels.md).
// A third dimension in front is summed directly: the taps along it are more input channels.
//
// Blocks of tiles go through all of it in the cache. They are cut by the problem, so the number of
// threads does not matter.
#pragma once
#include <memory>

#include "kernels/common/slots.hpp"
#include "kernels/conv/conv_ref.hpp"

namespace onnxtrain::simd {

// Whether it applies and there is enough to gain; the gradient of the weights has two dimensions.
bool winograd_fits(const kernels::ConvShape& s, bool weights = false);

// Where the 2x2 tiles of one tensor and the 4x4 tiles of another lie.
struct WinogradTiles {
  int64_t taps_d;                                   // along the third dimension, or 1
  int64_t batch, in_d, in_h, in_w, slice_channels;  // of one slice
  int64_t in_channels;                              // of the slices that make one output slice
  int64_t out_d, out_h, out_w, out_channels;
  int64_t front, top, left;  // padding of the input
  int64_t rows, columns;

  // gradient: of the input, which is a convolution of dy with the weights turned round.
  WinogradTiles(const kernels::ConvShape& s, bool gradient);
  int64_t count() const { return batch * out_d * rows * columns; }
  int64_t patch_floats() const { return 16 * slice_channels; }
  // Transforms tile t of x; `patch` is scratch for tiles at the border.
  void input(int64_t t, const float* x, float* patch, float* v, int64_t points) const;
  void input_slice(const float* slice, int64_t y0, int64_t x0, float* patch, float* v,
                   int64_t points) const;
  struct Out {
    int64_t at;  // of the first pixel
    int rows, columns;
  };
  Out out(int64_t t) const;
};

// The convolution (x, w -> y) or the gradient of its input (dy, w -> dx).
class Winograd {
 public:
  Winograd(const kernels::ConvShape& s, bool gradient, int threads);
  // Weights that never change are transformed once.
  void fix_weights(const float* w);
  size_t workspace() const;
  void run(const float* x, const float* w, const float* bias, float* y, void* workspace,
           ThreadPool& pool);

 private:
  void transform_weights(const float* w, float* u, ThreadPool* pool) const;
  void block(int64_t task, const float* x, const float* u, const float* bias, float* y,
             float* scratch) const;
  void multiply(int64_t tiles, const float* v, const float* u, int64_t panel, int64_t width,
                float* m) const;
  int64_t weight_floats() const { return 16 * points_u_; }
  int64_t slot_floats() const;

  WinogradTiles t_;
  bool gradient_;
  int64_t tiles_;                           // of a block
  int64_t blocks_, parts_;                  // of tiles, of output channels
  int64_t panels_;                          // of output channels
  int64_t ld_v_, ld_m_;                     // floats of a tile at one point
  int64_t points_v_, points_m_, points_u_;  // floats between points
  std::shared_ptr<void> fixed_;
  kernels::Slots slots_;
};

// The gradient of the weights: x, dy -> dw.
class WinogradGradW {
 public:
  explicit WinogradGradW(const kernels::ConvShape& s);
  size_t workspace() const;
  void run(const float* dy, const float* x, float* dw, void* workspace, ThreadPool& pool) const;

 private:
  void transform(int64_t tile, int64_t at, const float* dy, const float* x, float* patch, float* v,
                 float* m) const;
  void multiply(int64_t task, int64_t tiles, bool first, const float* v, const float* m,
                float* u) const;

  WinogradTiles t_;
  int64_t chunks_, chunk_;  // tiles that are transformed together
  int64_t parts_;           // of output channels, per point
  int64_t ld_v_, ld_m_, ld_u_, points_v_, points_m_, points_u_;
};

}  // namespace onnxtrain::simd
