// Channels-last convolutions whose windows do not overlap and need no padding (1x1 of any stride,
// patches, 2x2 of stride 2): every output pixel has inputs of its own, so forward and both
// gradients are one GEMM with [pixels, taps * channels], after the pixels were brought
// together where they lie apart. Groups of 1x1 convolutions are GEMMs side by side.
#pragma once
#include <array>
#include <memory>

#include "kernels/conv/conv_pass.hpp"
#include "kernels/conv/conv_ref.hpp"
#include "kernels/conv/weight_gradient.hpp"
#include "kernels/gemm/gemm.hpp"

namespace onnxtrain::simd {

class PatchConv {
 public:
  // Whether it applies and is the faster way.
  static bool fits(const kernels::ConvShape& s, ConvPass pass);
  PatchConv(const kernels::ConvShape& s, ConvPass pass, bool bias);
  // Weights that never change are packed once.
  void fix_weights(const float* w);
  size_t workspace() const;
  // Forward: a = x, b = w; gradient of x: a = dy, b = w; gradient of w: a = dy, b = x. bias: added
  // to the channels of the result of the first two, may be null.
  void run(const float* a, const float* b, const float* bias, float* out, void* workspace,
           ThreadPool& pool) const;

 private:
  using Dims = std::array<int64_t, 3>;
  void move_pixels(const float* from, float* to, ThreadPool& pool) const;
  void move_weights(const float* from, float* to, bool back, ThreadPool& pool) const;
  void add_bias(const float* bias, float* out, ThreadPool& pool) const;
  int64_t rows() const { return pixels_ * row_; }

  ConvPass pass_;
  int64_t batch_, channels_, out_channels_, groups_, taps_, pixels_, row_;  // row_: taps * channels
  Dims in_, out_, kernel_, strides_;
  bool gathers_;        // the pixels lie apart
  bool separate_bias_;  // not by the GEMM
  GemmPlan gemm_;
  std::shared_ptr<void> fixed_;
  std::unique_ptr<ConvGradW> grad_w_;  // in place of the GEMM
};

}  // namespace onnxtrain::simd
