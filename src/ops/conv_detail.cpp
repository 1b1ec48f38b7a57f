// Shared by the convolution operators.
#include "ops/conv_detail.hpp"

#include "kernels/onednn/conv.hpp"
#include "kernels/simd/conv_grad_w.hpp"
#include "kernels/simd/winograd.hpp"
#include "ops/strided_copy_detail.hpp"
#include "ops/window_detail.hpp"

namespace onnxtrain::ops {

kernels::ConvShape conv_shape_of(const Node& n, const Shape& x, const Shape& w) {
  Shape spatial = spatial_of(x, "a convolution");
  int64_t group = n.i("group", 1);
  if (w.size() != x.size())
    model_error("OT1142", cat("the weights of ", n.label(), " have shape ", to_string(w),
                              ", the input ", to_string(x)));
  if (group < 1 || w[0] % group != 0 || group > (int64_t(1) << 31) || x[1] != w[1] * group)
    model_error("OT1142", cat("weights ", to_string(w), " with group ", group,
                              " do not fit an input of shape ", to_string(x)));
  Shape kernel(w.begin() + 2, w.end());
  if (Shape k = n.ints("kernel_shape"); !k.empty() && k != kernel)
    model_error("OT1142", cat("kernel_shape ", to_string(k), " of ", n.label(),
                              " differs from its weights ", to_string(w)));
  kernels::ConvShape s;
  s.window = window_of(n, spatial, kernel);
  s.batch = x[0];
  s.groups = group;
  s.in_channels = x[1];
  s.out_channels = w[0];
  return s;
}

Shape with_channels(int64_t batch, int64_t channels, const std::vector<int64_t>& spatial) {
  Shape s{batch, channels};
  s.insert(s.end(), spatial.begin(), spatial.end());
  return s;
}

namespace {
onednn::ConvPass pass_of(ConvKind k) {
  return k == ConvKind::kForward ? onednn::ConvPass::kForward
         : k == ConvKind::kGradX ? onednn::ConvPass::kGradX
                                 : onednn::ConvPass::kGradW;
}
}  // namespace

std::string conv_onednn_refuses(const Prepare& p, const kernels::ConvShape& s) {
  if (p.in(0).dtype != DType::kFloat && p.in(0).dtype != DType::kFloat16 &&
      p.in(0).dtype != DType::kBFloat16)
    return "needs float32";
  if (s.window.dims() > 3) return "more than 3 spatial dimensions";
  if (s.batch * s.in_channels * s.out_channels * s.window.in_size() * s.window.out_size() == 0)
    return "an empty tensor";
  return "";
}

Kernel conv_onednn(Prepare& p, const kernels::ConvShape& s, ConvKind kind, ConvOperands o) {
  bool last = is_channels_last(p.node());
  if (last && kind == ConvKind::kGradW && simd::ConvGradW::fits(s)) {
    auto plan = std::make_shared<simd::ConvGradW>(s);
    p.workspace = plan->workspace();
    return [plan, o](const Run& r) {
      plan->run(r.in<float>(o.dy), r.in<float>(o.x), r.out<float>(0), r.workspace, *r.pool);
    };
  }
  std::shared_ptr<onednn::ConvPlan> plan =
      onednn::ConvPlan::make(s, pass_of(kind), o.bias >= 0, last, p.pool().threads());
  if (!plan && last) return conv_by_definition_last(p, s, kind, o);
  if (!plan) return conv_by_definition<float>(p, s, kind, o);
  if (o.w >= 0)
    if (const Tensor* w = p.constant(o.w)) plan->fix_weights(w->as<float>());
  p.workspace = plan->workspace();
  return [plan, o](const Run& r) {
    auto get = [&](int i) { return i < 0 ? nullptr : r.in<float>(i); };
    plan->run({get(o.x), get(o.w), get(o.bias), get(o.dy), r.out<float>(0)}, r.workspace, *r.pool);
  };
}

std::string conv_winograd_refuses(const Prepare& p, const kernels::ConvShape& s) {
  if (p.in(0).dtype != DType::kFloat) return "needs float32";
  if (!is_channels_last(p.node())) return "channels are not last";
  return simd::winograd_fits(s) ? "" : "not 3x3 of stride 1, or too small";
}

Kernel conv_winograd(Prepare& p, const kernels::ConvShape& s, ConvKind kind, ConvOperands o) {
  if (kind == ConvKind::kGradW) {
    auto plan = std::make_shared<simd::WinogradGradW>(s);
    p.workspace = plan->workspace();
    return [plan, o](const Run& r) {
      plan->run(r.in<float>(o.dy), r.in<float>(o.x), r.out<float>(0), r.workspace, *r.pool);
    };
  }
  auto plan = std::make_shared<simd::Winograd>(s, kind == ConvKind::kGradX, p.pool().threads());
  if (const Tensor* w = p.constant(o.w)) plan->fix_weights(w->as<float>());
  p.workspace = plan->workspace();
  int from = kind == ConvKind::kGradX ? o.dy : o.x;
  return [plan, o, from](const Run& r) {
    plan->run(r.in<float>(from), r.in<float>(o.w), o.bias < 0 ? nullptr : r.in<float>(o.bias),
              r.out<float>(0), r.workspace, *r.pool);
  };
}

// Through copies in ONNX's order.
Kernel conv_by_definition_last(Prepare& p, const kernels::ConvShape& s, ConvKind kind,
                               ConvOperands o) {
  auto copy = [](int64_t channels, int64_t pixels, int64_t batch, bool to_last) {
    Shape dims{batch, to_last ? pixels : channels, to_last ? channels : pixels};
    Shape src{channels * pixels, 1, to_last ? pixels : channels}, dst = strides_of(dims);
    return StridedCopy(DType::kFloat, dims, src, dst);
  };
  int64_t in = s.window.in_size(), out = s.window.out_size();
  StridedCopy x_first = copy(s.in_channels, in, s.batch, false),
              dy_first = copy(s.out_channels, out, s.batch, false),
              y_last = copy(s.out_channels, out, s.batch, true),
              dx_last = copy(s.in_channels, in, s.batch, true);
  int64_t x_size = s.batch * s.in_channels * in, y_size = s.batch * s.out_channels * out;
  p.workspace = size_t(x_size + y_size) * sizeof(float);
  return [=](const Run& r) {
    auto get = [&](int i) { return i < 0 ? nullptr : r.in<float>(i); };
    float *x = static_cast<float*>(r.workspace), *y = x + x_size;
    if (o.x >= 0) x_first.run(*r.pool, r.inputs[o.x], x);
    if (o.dy >= 0) dy_first.run(*r.pool, r.inputs[o.dy], y);
    if (kind == ConvKind::kForward) {
      kernels::conv_ref(s, x, get(o.w), get(o.bias), y, *r.pool);
      y_last.run(*r.pool, y, r.outputs[0]);
    } else if (kind == ConvKind::kGradX) {
      kernels::conv_grad_x_ref(s, y, get(o.w), get(o.bias), x, *r.pool);
      dx_last.run(*r.pool, x, r.outputs[0]);
    } else {
      kernels::conv_grad_w_ref(s, y, x, r.out<float>(0), *r.pool);
    }
  };
}

bool conv_channels_last(const Graph& g, const Node& n) {
  const TypeInfo& t = g.value(n.inputs[0]).type;
  return t.elem == DType::kFloat && t.shape->size() >= 3 && t.shape->size() <= 5;
}

Cost conv_cost(const Prepare& p, const kernels::ConvShape& s) {
  Cost c;
  c.flops = 2.0 * double(s.batch * s.out_channels) * double(s.window.out_size()) *
            double(s.in_per_group()) * double(s.window.taps());
  for (int i = 0; i < p.inputs(); ++i)
    if (p.has(i)) c.bytes += double(p.in(i).size()) * double(dtype_size(p.in(i).dtype));
  c.bytes += double(p.out(0).size()) * double(dtype_size(p.out(0).dtype));
  return c;
}

ValueId bias_grad(GradBuilder& b, ValueId dy) {
  std::vector<int64_t> axes{0};
  for (int64_t d = 2; d < b.need_rank(dy); ++d) axes.push_back(d);
  return b.reduce_sum(dy, axes, false);
}

}  // namespace onnxtrain::ops
