// Convolutions as GEMMs over columns: the inputs of every output pixel are written side by side,
// [pixels][C][taps], and the weights stay as they lie in the file. Any number of groups and spatial
// dimensions, channels last or first. The fastest way for few pixels with many weights (the last
// stages of a network at batch 1 or 2), where bringing weights into another order would cost more
// than the GEMMs; in builds without oneDNN also what serves every other shape.
//
// Columns are made for a stretch of pixels at a time. Stretches are cut by the problem, so the
// number of threads does not matter.
#pragma once
#include <array>
#include <vector>

#include "kernels/conv/conv_pass.hpp"
#include "kernels/conv/conv_ref.hpp"
#include "kernels/gemm/gemm.hpp"

namespace onnxtrain::simd {

class Im2ColConv {
 public:
  // Whether it is the fastest way when weights change from step to step (channels last).
  static bool fits(const kernels::ConvShape& s);
  Im2ColConv(const kernels::ConvShape& s, ConvPass pass, bool bias, bool channels_last = true);
  size_t workspace() const;
  // Forward: a = x, b = w; gradient of x: a = dy, b = w; gradient of w: a = dy, b = x. bias: added
  // to the channels of the result of the first two, may be null.
  void run(const float* a, const float* b, const float* bias, float* out, void* workspace,
           ThreadPool& pool) const;

 private:
  // Output pixels [begin, end) of the whole batch, and which of the two plans is theirs.
  struct Stretch {
    int64_t begin, end;
    size_t plan;
  };
  void cut();
  void find_uses();
  GemmDesc gemm(int64_t pixels, bool bias) const;
  const float* y_at(const float* y, int64_t pixel) const;
  void fill(const float* bias, float* out, ThreadPool& pool) const;
  void gather(const Stretch& s, const float* x, const float* zeros, float* columns,
              ThreadPool& pool) const;
  void scatter(const Stretch& s, const float* columns, float* dx, ThreadPool& pool) const;

  ConvPass pass_;
  bool last_;          // channels
  bool bias_in_gemm_;  // otherwise the result begins as the bias, or as zeros
  bool sums_ = false;  // GEMMs are added to what is there
  int64_t groups_, channels_, out_channels_, taps_, row_;  // row_: channels * taps
  int64_t in_pixels_, out_pixels_, batch_;
  int64_t longest_ = 0;                // stretch
  std::vector<int64_t> source_;        // [output pixel][tap]: input pixel or -1
  std::vector<int64_t> uses_, first_;  // input pixel i is at uses_[first_[i]..first_[i+1])
  std::vector<Stretch> stretches_;
  std::array<GemmPlan, 2> gemms_;
};

}  // namespace onnxtrain::simd
