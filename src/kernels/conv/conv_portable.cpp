// Convolutions of any shape by columns and our own GEMMs, in builds without oneDNN.
#include "core/error.hpp"
#include "kernels/conv/conv_general.hpp"
#include "kernels/conv/im2col_conv.hpp"

namespace onnxtrain::general {

const char* const kConvName = "portable";
const bool kConvIsFastForDepthwise = false;

struct ConvPlan::Impl {
  ConvPass pass;
  simd::Im2ColConv conv;
};

ConvPlan::ConvPlan(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ConvPlan::~ConvPlan() = default;

std::unique_ptr<ConvPlan> ConvPlan::make(const kernels::ConvShape& shape, ConvPass pass,
                                         bool with_bias, bool channels_last, int /*threads*/,
                                         std::string* /*why*/) {
  auto impl =
      std::make_unique<Impl>(Impl{pass, simd::Im2ColConv(shape, pass, with_bias, channels_last)});
  return std::unique_ptr<ConvPlan>(new ConvPlan(std::move(impl)));
}

void ConvPlan::fix_weights(const float* /*w*/) {}  // they are used as they lie

size_t ConvPlan::workspace() const { return impl_->conv.workspace(); }

void ConvPlan::run(const ConvArgs& args, void* workspace, ThreadPool& pool) {
  const float* a = impl_->pass == ConvPass::kForward ? args.x : args.dy;
  const float* b = impl_->pass == ConvPass::kWeightGradient ? args.x : args.w;
  impl_->conv.run(a, b, args.bias, args.out, workspace, pool);
}

std::string ConvPlan::describe() const { return kConvName; }

}  // namespace onnxtrain::general
