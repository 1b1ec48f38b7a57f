// Channels-last convolutions of few pixels with many weights (the last stages of a network at batch
// 1 or 2), as one GEMM per pass with the weights as they lie in the file: bringing them
// into another order would cost more than the GEMMs. The inputs of every output pixel are
// written side by side, [pixels][C][taps].
#pragma once
#include "kernels/conv/conv_pass.hpp"
#include "kernels/conv/conv_ref.hpp"
#include "kernels/gemm/gemm.hpp"

namespace onnxtrain::simd {

class Im2ColConv {
 public:
  // Whether it is the faster way when weights change from step to step.
  static bool fits(const kernels::ConvShape& s);
  Im2ColConv(const kernels::ConvShape& s, ConvPass pass, bool bias);
  size_t workspace() const;
  // Forward: a = x, b = w; gradient of x: a = dy, b = w; gradient of w: a = dy, b = x. bias: added
  // to the channels of the result of the first two, may be null.
  void run(const float* a, const float* b, const float* bias, float* out, void* workspace,
           ThreadPool& pool) const;

 private:
  void gather(const float* x, const float* zeros, float* columns, ThreadPool& pool) const;
  void scatter(const float* columns, const float* bias, float* dx, ThreadPool& pool) const;

  ConvPass pass_;
  int64_t channels_, taps_, row_, in_pixels_, out_pixels_, batch_;  // row_: channels * taps
  std::vector<int64_t> source_;        // [output pixel][tap]: input pixel or -1
  std::vector<int64_t> uses_, first_;  // input pixel i is at columns uses_[first_[i]..first_[i+1])
  GemmPlan product_;
};

}  // namespace onnxtrain::simd
