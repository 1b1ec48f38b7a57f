// float32 convolution of any shape: forward, gradient of the input (which is also the transposed
// convolution) and gradient of the weights. Made once per shape, run many times. Two files have it,
// and a build takes one (ONNXTRAIN_ONEDNN): conv_onednn.cpp, or conv_portable.cpp with our own
// GEMMs for processors that oneDNN has no package for.
//
// Same numbers for any thread count: the problem is cut into fixed chunks, which our pool runs.
//
// Activations are row-major [N,C,D...] or, with channels_last, [N,D...,C]. Weights and their
// gradient are always [M,C/group,k...].
#pragma once
#include <memory>
#include <string>

#include "kernels/conv/conv_pass.hpp"
#include "kernels/conv/conv_ref.hpp"

namespace onnxtrain::general {

struct ConvArgs {
  const float* x = nullptr;     // forward, weight gradient
  const float* w = nullptr;     // forward, input gradient
  const float* bias = nullptr;  // forward, transposed convolution; may be null
  const float* dy = nullptr;    // both gradients
  float* out = nullptr;         // y, dx or dw
};

// "onednn" or "portable"
extern const char* const kConvName;
// Whether it is as fast as ours for depthwise convolutions of ordinary images.
extern const bool kConvIsFastForDepthwise;

class ConvPlan {
 public:
  // Null when there is nothing fast for this problem; `why` then says so.
  static std::unique_ptr<ConvPlan> make(const kernels::ConvShape& shape, ConvPass pass,
                                        bool with_bias, bool channels_last, int threads,
                                        std::string* why = nullptr);
  ~ConvPlan();
  // Weights that never change are brought into the kernel's order once.
  void fix_weights(const float* w);
  size_t workspace() const;
  void run(const ConvArgs& args, void* workspace, ThreadPool& pool);
  // For people: chunks, parts and the name of the implementation.
  std::string describe() const;

 private:
  struct Impl;
  explicit ConvPlan(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace onnxtrain::general
