// Shapes, kernels and gradient builders shared by Conv, ConvTranspose and their gradient operators.
#pragma once
#include "kernels/ref/conv.hpp"
#include "op/channels_last.hpp"
#include "op/grad_builder.hpp"
#include "op/op.hpp"

namespace onnxtrain::ops {

// The problem of a convolution from the shapes of its input [N,C,...] and weights [M,C/group,k...].
kernels::ConvShape conv_shape_of(const Node& n, const Shape& x, const Shape& w);
// [N, channels, spatial...]
Shape with_channels(int64_t batch, int64_t channels, const std::vector<int64_t>& spatial);

// Kernels by pass; inputs are numbered as in ConvGradX(dy, w, shape) and ConvGradW(dy, x, shape).
// `bias` is the number of the bias input, or -1.
struct ConvOperands {
  int x = -1, w = -1, dy = -1, bias = -1;
};
enum class ConvKind { kForward, kGradX, kGradW };
std::string conv_onednn_refuses(const Prepare& p, const kernels::ConvShape& s);
Kernel conv_onednn(Prepare& p, const kernels::ConvShape& s, ConvKind kind, ConvOperands o);
// 3x3 of stride 1, channels last.
std::string conv_winograd_refuses(const Prepare& p, const kernels::ConvShape& s);
Kernel conv_winograd(Prepare& p, const kernels::ConvShape& s, ConvKind kind, ConvOperands o);
template <class T>
Kernel conv_by_definition(Prepare& p, const kernels::ConvShape& s, ConvKind kind, ConvOperands o) {
  (void)p;
  return [s, kind, o](const Run& r) {
    auto get = [&](int i) { return i < 0 ? nullptr : r.in<T>(i); };
    T* out = r.out<T>(0);
    if (kind == ConvKind::kForward)
      kernels::conv_ref(s, get(o.x), get(o.w), get(o.bias), out, *r.pool);
    else if (kind == ConvKind::kGradX)
      kernels::conv_grad_x_ref(s, get(o.dy), get(o.w), get(o.bias), out, *r.pool);
    else
      kernels::conv_grad_w_ref(s, get(o.dy), get(o.x), out, *r.pool);
  };
}

// The same on channels-last activations, for what oneDNN has no fast kernel for.
Kernel conv_by_definition_last(Prepare& p, const kernels::ConvShape& s, ConvKind kind,
                               ConvOperands o);
// Whether a convolution node can be turned to channels last: float32, at most three dimensions.
bool conv_channels_last(const Graph& g, const Node& n);

// The products of the problem (the same for all three kinds), every operand once.
Cost conv_cost(const Prepare& p, const kernels::ConvShape& s);

// Sum of dy over everything but the channels.
ValueId bias_grad(GradBuilder& b, ValueId dy);

}  // namespace onnxtrain::ops
