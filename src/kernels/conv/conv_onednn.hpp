// float32 convolution through oneDNN: forward, gradient of the input (which is also the transposed
// convolution) and gradient of the weights. Made once per shape, run many times.
//
// Same numbers for any thread count: the problem is cut into fixed chunks (images of the batch, and
// parts of the channels when there are few images), each is a single-threaded primitive, and our
// pool runs them. Weight gradients of the chunks are added in their order.
//
// Activations are row-major [N,C,D...] or, with channels_last, [N,D...,C]; the latter is what
// oneDNN reads and writes directly. Weights and their gradient are always [M,C/group,k...].
#pragma once
#include <memory>
#include <string>

#include "kernels/conv/conv_pass.hpp"
#include "kernels/conv/conv_ref.hpp"

namespace onnxtrain::onednn {

struct ConvArgs {
  const float* x = nullptr;     // forward, weight gradient
  const float* w = nullptr;     // forward, input gradient; null when fixed
  const float* bias = nullptr;  // forward, transposed convolution; may be null
  const float* dy = nullptr;    // both gradients
  float* out = nullptr;         // y, dx or dw
};

class ConvPlan {
 public:
  // Null when oneDNN has nothing fast for this problem; `why` then says so.
  static std::unique_ptr<ConvPlan> make(const kernels::ConvShape& shape, ConvPass pass,
                                        bool with_bias, bool channels_last, int threads,
                                        std::string* why = nullptr);
  ~ConvPlan();
  // Weights that never change are brought into oneDNN's order once.
  void fix_weights(const float* w);
  size_t workspace() const;
  void run(const ConvArgs& args, void* workspace, ThreadPool& pool);
  // For people: chunks, parts and the name of oneDNN's implementation.
  std::string describe() const;

 private:
  struct Impl;
  explicit ConvPlan(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace onnxtrain::onednn
