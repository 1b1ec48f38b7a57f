// Shared by the pools.
#include "ops/nn/pool_shape.hpp"

#include "ops/nn/conv_shape.hpp"

namespace onnxtrain::ops {

kernels::Window pool_window(const Node& n, const Shape& x) {
  Shape spatial = spatial_of(x, "a pool");
  if (!is_global(n))
    return window_of(n, spatial, kernel_shape_of(n, spatial.size()), n.i("ceil_mode", 0) != 0);
  size_t dims = spatial.size();
  kernels::Window w;
  w.in = w.kernel = spatial;
  w.out = w.strides = w.dilations = std::vector<int64_t>(dims, 1);
  w.pads_begin = w.pads_end = std::vector<int64_t>(dims, 0);
  return w;
}

void pool_shape(ShapeCtx& c) {
  const Shape& x = c.shape(0);
  std::vector<int64_t> out = pool_window(c.node(), x).out;  // checks the rank first
  c.set(0, c.dtype(0), with_channels(x[0], x[1], out));
}

void set_pool_gradient(ShapeCtx& c, DType dtype, const Shape& x) {
  std::vector<int64_t> out = pool_window(c.node(), x).out;
  Shape want = with_channels(x[0], x[1], out);
  if (c.shape(0) != want)
    model_error("OT1142",
                cat("dy has shape ", to_string(c.shape(0)), ", expected ", to_string(want)));
  c.set(0, dtype, x);
}

void pool_grad_shape(ShapeCtx& c) { set_pool_gradient(c, c.dtype(1), c.shape(1)); }

bool pool_channels_last(const Graph& g, const Node& n) {
  if (n.outputs.size() > 1 && n.outputs[1] != kNone) return false;
  if (g.value(n.inputs[0]).type.elem != DType::kFloat) return false;
  ValueId x = n.domain == kOwnDomain ? n.outputs[0] : n.inputs[0];  // of a gradient: dx
  kernels::Window w = pool_window(n, g.value(x).type.concrete_shape());
  return w.taps() <= (1 << 16) && w.out_size() * w.taps() <= (1 << 20);
}

std::shared_ptr<simd::ChannelPool> channel_pool(const Node& n, const Shape& x) {
  return std::make_shared<simd::ChannelPool>(pool_window(n, from_channels_last(x)), x.front(),
                                             x.back());
}

GradBuilder::Attrs pool_attrs(const Node& n) {
  if (!is_global(n)) return window_attrs(n);
  GradBuilder::Attrs a{{"global", int64_t(1)}};
  if (const Attr* p = n.find("p")) a["p"] = *p;
  return a;
}

}  // namespace onnxtrain::ops
