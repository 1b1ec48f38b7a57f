// Conv, and the two operators of its gradient: ConvGradX(dy, w, shape of x), ConvGradW(dy, x, shape
// of w).
#include "ops/common/lower_shape.hpp"
#include "ops/nn/conv_kernel.hpp"
#include "ops/nn/window_shape.hpp"

namespace onnxtrain::ops {

namespace {

using kernels::ConvShape;

// ---------------------------------------------------------------- forward
void conv_shape(ShapeCtx& c) {
  ConvShape s = conv_shape_of(c.node(), c.shape(0), c.shape(1));
  check_conv_bias(c, s.out_channels);
  c.set(0, c.dtype(0), with_channels(s.batch, s.out_channels, s.window.out));
}

ConvShape problem(const Prepare& p) {
  return conv_shape_of(p.node(), channels_first(p.node(), p.in(0).shape), p.in(1).shape);
}
ConvProblem forward(const Prepare& p) {
  return {problem(p), ConvPass::kForward, {.x = 0, .w = 1, .dy = -1, .bias = p.has(2) ? 2 : -1}};
}

std::vector<ValueId> conv_grad(GradBuilder& b) {
  std::vector<ValueId> g(size_t(b.inputs()), kNone);
  auto attrs = window_attrs(b.node());
  if (b.wants(0)) g[0] = b.own("ConvGradX", {b.dy(), b.x(1), b.shape_of(b.x(0))}, attrs);
  if (b.wants(1)) g[1] = b.own("ConvGradW", {b.dy(), b.x(0), b.shape_of(b.x(1))}, attrs);
  if (b.has(2) && b.wants(2)) g[2] = bias_grad(b, b.dy());
  return g;
}

// ---------------------------------------------------------------- gradients
void check_dy(const ConvShape& s, const Shape& dy) {
  Shape want = with_channels(s.batch, s.out_channels, s.window.out);
  if (dy != want)
    model_error("OT1142", cat("dy has shape ", to_string(dy), ", expected ", to_string(want)));
}

void grad_x_shape(ShapeCtx& c) {
  Shape x = c.ints(2);
  num_elements(x);
  check_dy(conv_shape_of(c.node(), x, c.shape(1)), c.shape(0));
  c.set(0, c.dtype(0), x);
}
void grad_w_shape(ShapeCtx& c) {
  Shape w = c.ints(2);
  num_elements(w);
  check_dy(conv_shape_of(c.node(), c.shape(1), w), c.shape(0));
  c.set(0, c.dtype(0), w);
}

ConvShape problem_x(const Prepare& p) {
  return conv_shape_of(p.node(), channels_first(p.node(), p.out(0).shape), p.in(1).shape);
}
ConvShape problem_w(const Prepare& p) {
  return conv_shape_of(p.node(), channels_first(p.node(), p.in(1).shape), p.out(0).shape);
}
ConvProblem backward_x(const Prepare& p) {
  return {problem_x(p), ConvPass::kInputGradient, {.x = -1, .w = 1, .dy = 0, .bias = -1}};
}
ConvProblem backward_w(const Prepare& p) {
  return {problem_w(p), ConvPass::kWeightGradient, {.x = 1, .w = -1, .dy = 0, .bias = -1}};
}

// dx is linear in dy and in w: its gradients are the convolution and ConvGradW again.
std::vector<ValueId> grad_x_grad(GradBuilder& b) {
  auto attrs = window_attrs(b.node());
  return {b.wants(0) ? b.call("Conv", {b.dy(), b.x(1)}, attrs) : kNone,
          b.wants(1) ? b.own("ConvGradW", {b.x(0), b.dy(), b.shape_of(b.x(1))}, attrs) : kNone,
          kNone};
}
std::vector<ValueId> grad_w_grad(GradBuilder& b) {
  auto attrs = window_attrs(b.node());
  return {b.wants(0) ? b.call("Conv", {b.x(1), b.dy()}, attrs) : kNone,
          b.wants(1) ? b.own("ConvGradX", {b.x(0), b.dy(), b.shape_of(b.x(1))}, attrs) : kNone,
          kNone};
}

// ---------------------------------------------------------------- in standard operators
// Cuts the spatial dimensions down to `to`.
ValueId crop(GradBuilder& b, ValueId v, const std::vector<int64_t>& to) {
  std::vector<int64_t> axes, starts(to.size(), 0);
  for (size_t d = 0; d < to.size(); ++d) axes.push_back(int64_t(d) + 2);
  return b.call("Slice", {v, b.constant_ints(starts), b.constant_ints(to), b.constant_ints(axes)});
}

// The image without what lies behind the last window: its sizes, and the padding that is left.
void reached(const kernels::Window& w, std::vector<int64_t>& in, std::vector<int64_t>& end) {
  for (size_t d = 0; d < w.dims(); ++d) {
    const int64_t sees = (w.out[d] - 1) * w.strides[d] + (w.kernel[d] - 1) * w.dilations[d] + 1;
    const int64_t behind = sees - w.pads_begin[d] - w.in[d];
    in.push_back(std::max<int64_t>(1, w.in[d] + std::min<int64_t>(0, behind)));
    end.push_back(std::max<int64_t>(0, behind));
  }
}

std::vector<int64_t> joined(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  std::vector<int64_t> r = a;
  r.insert(r.end(), b.begin(), b.end());
  return r;
}

// A transposed convolution; output_padding makes up for input columns that no window reached.
std::vector<ValueId> grad_x_lower(GradBuilder& b) {
  Shape x = lowering_shape_of_one(b, b.x(2), b.y(), "its input");
  ConvShape s = conv_shape_of(b.node(), x, b.shape(b.x(1)));
  const kernels::Window& w = s.window;
  std::vector<int64_t> extra, pads_end;
  for (size_t d = 0; d < w.dims(); ++d) {
    int64_t got = (w.out[d] - 1) * w.strides[d] + (w.kernel[d] - 1) * w.dilations[d] + 1 -
                  w.pads_begin[d] - w.pads_end[d];
    extra.push_back(w.in[d] - got);
  }
  GradBuilder::Attrs a{{"strides", w.strides},
                       {"dilations", w.dilations},
                       {"group", s.groups},
                       {"pads", joined(w.pads_begin, w.pads_end)},
                       {"output_padding", extra}};
  return {b.call("ConvTranspose", {b.x(0), b.x(1)}, a)};
}

// A convolution whose batch runs over input channels and whose channels run over the batch.
std::vector<ValueId> grad_w_lower(GradBuilder& b) {
  Shape wshape = lowering_shape(b, b.x(2), b.y(), "its weights"),
        xshape = lowering_shape(b, kNone, b.x(1), "its input");
  bool any_batch = xshape[0] < 0;
  xshape[0] = std::max<int64_t>(xshape[0], 1);
  ConvShape s = conv_shape_of(b.node(), xshape, wshape);
  const kernels::Window& w = s.window;
  std::vector<int64_t> perm_x{2, 1, 0}, perm_dy{1, 0};
  for (size_t d = 0; d < w.dims(); ++d)
    perm_x.push_back(int64_t(d) + 3), perm_dy.push_back(int64_t(d) + 2);
  std::vector<int64_t> in, end;
  reached(w, in, end);
  ValueId x = in == w.in ? b.x(1) : crop(b, b.x(1), in);
  Shape grouped{any_batch ? -1 : s.batch, s.groups, s.in_per_group()};
  Shape folded{s.in_per_group(), any_batch ? -1 : s.groups * s.batch};
  x = b.call("Reshape", {x, b.constant_ints(joined(grouped, in))});
  x = b.transpose(x, perm_x);
  x = b.call("Reshape", {x, b.constant_ints(joined(folded, in))});
  ValueId dy = b.transpose(b.x(0), perm_dy);
  GradBuilder::Attrs a{{"strides", w.dilations},
                       {"dilations", w.strides},
                       {"group", s.groups},
                       {"pads", joined(w.pads_begin, end)}};
  ValueId dw = b.transpose(b.call("Conv", {x, dy}, a), perm_dy);
  for (size_t d = 0; d < w.dims(); ++d)  // windows that see nothing but padding
    if (w.pads_begin[d] + in[d] + end[d] - (w.out[d] - 1) * w.strides[d] - 1 !=
        (w.kernel[d] - 1) * w.dilations[d])
      return {crop(b, dw, w.kernel)};
  return {dw};
}

Cost cost(const Prepare& p) { return conv_cost(p, problem(p)); }
Cost cost_x(const Prepare& p) { return conv_cost(p, problem_x(p)); }
Cost cost_w(const Prepare& p) { return conv_cost(p, problem_w(p)); }

}  // namespace

void register_conv(OpTable& t) {
  const ChannelsLast one{.in = {0}, .out = {0}, .gains = true, .applies = conv_channels_last},
      both{.in = {0, 1}, .out = {}, .gains = true, .applies = conv_channels_last};
  t.add({.name = "Conv",
         .shape = conv_shape,
         .impls = ConvKernels<forward>::all(),
         .grad = conv_grad,
         .cost = cost,
         .channels_last = one});
  t.add({.name = "ConvGradX",
         .domain = std::string(kOwnDomain),
         .shape = grad_x_shape,
         .shape_values = {2},
         .impls = ConvKernels<backward_x>::all(),
         .grad = grad_x_grad,
         .cost = cost_x,
         .channels_last = one,
         .lower = grad_x_lower});
  t.add({.name = "ConvGradW",
         .domain = std::string(kOwnDomain),
         .shape = grad_w_shape,
         .shape_values = {2},
         .impls = ConvKernels<backward_w>::all(),
         .grad = grad_w_grad,
         .cost = cost_w,
         .channels_last = both,
         .lower = grad_w_lower});
}

}  // namespace onnxtrain::ops
