// Which kernel computes which convolution.
#include "ops/nn/conv_kernel.hpp"

#include "kernels/conv/conv_general.hpp"
#include "kernels/conv/grouped_conv.hpp"
#include "kernels/conv/im2col_conv.hpp"
#include "kernels/conv/patch_conv.hpp"
#include "kernels/conv/weight_gradient.hpp"
#include "kernels/conv/winograd.hpp"
#include "ops/common/strided_copy_kernel.hpp"

namespace onnxtrain::ops {

namespace {

using kernels::ConvShape;

// ---------------------------------------------------------------- what ours have in common
bool empty(const ConvShape& s) {
  return s.batch * s.in_channels * s.out_channels * s.window.in_size() * s.window.out_size() == 0;
}

// Padding of less than 0: ConvTranspose has it.
bool begins_late(const ConvShape& s) {
  const auto& begin = s.window.pads_begin;
  return std::any_of(begin.begin(), begin.end(), [](int64_t p) { return p < 0; });
}

// A first dimension without neighbours belongs to the batch: in channels-last order the images of
// a sequence lie like those of a batch.
ConvShape folded(ConvShape s) {
  kernels::Window& w = s.window;
  while (w.dims() > 2 && w.kernel[0] == 1 && w.strides[0] == 1 && w.in[0] == w.out[0] &&
         w.pads_begin[0] == 0) {
    s.batch *= w.in[0];
    for (auto* v : {&w.in, &w.out, &w.kernel, &w.strides, &w.dilations, &w.pads_begin, &w.pads_end})
      v->erase(v->begin());
  }
  return s;
}

std::string not_ours(const Prepare& p, const ConvProblem& c) {
  if (p.in(0).dtype != DType::kFloat) return "needs float32";
  if (!is_channels_last(p.node())) return "channels are not last";
  if (begins_late(c.shape)) return "no window reaches the first columns";
  return empty(c.shape) ? "an empty tensor" : "";
}

template <class F>
std::string refuse_unless(const Prepare& p, const ConvProblem& c, F fits, const char* why) {
  std::string no = not_ours(p, c);
  return no.empty() && !fits(folded(c.shape)) ? why : no;
}

// plan->run(a, b, bias, out, workspace, pool): x, w or dy, w or dy, x.
template <class Plan>
Kernel planned(Prepare& p, const ConvProblem& c, std::shared_ptr<Plan> plan) {
  p.workspace = plan->workspace();
  const ConvOperands& o = c.operands;
  int a = c.kind == ConvPass::kForward ? o.x : o.dy,
      b = c.kind == ConvPass::kWeightGradient ? o.x : o.w;
  return [plan, a, b, bias = o.bias](const Run& r) {
    plan->run(r.in<float>(a), r.in<float>(b), bias < 0 ? nullptr : r.in<float>(bias),
              r.out<float>(0), r.workspace, *r.pool);
  };
}

template <class Plan>
Kernel planned_gradient(Prepare& p, const ConvProblem& c, std::shared_ptr<Plan> plan) {
  p.workspace = plan->workspace();
  return [plan, o = c.operands](const Run& r) {
    plan->run(r.in<float>(o.dy), r.in<float>(o.x), r.out<float>(0), r.workspace, *r.pool);
  };
}

template <class Plan>
void fix_weights(Prepare& p, const ConvProblem& c, Plan& plan) {
  if (c.operands.w < 0) return;
  if (const Tensor* w = p.constant(c.operands.w)) plan.fix_weights(w->as<float>());
}

// ---------------------------------------------------------------- ours
std::string no_winograd(const Prepare& p, const ConvProblem& c) {
  auto fits = [&](const ConvShape& s) {
    return simd::winograd_fits(s, c.kind == ConvPass::kWeightGradient);
  };
  return refuse_unless(p, c, fits, "not 3x3 of stride 1, or too small");
}
Kernel make_winograd(Prepare& p, const ConvProblem& c) {
  ConvShape s = folded(c.shape);
  if (c.kind == ConvPass::kWeightGradient)
    return planned_gradient(p, c, std::make_shared<simd::WinogradGradW>(s));
  auto plan =
      std::make_shared<simd::Winograd>(s, c.kind == ConvPass::kInputGradient, p.pool().threads());
  fix_weights(p, c, *plan);
  return planned(p, c, plan);
}

std::string no_columns(const Prepare& p, const ConvProblem& c) {
  if (c.operands.w >= 0 && p.constant(c.operands.w)) return "weights are brought in order once";
  return refuse_unless(p, c, simd::Im2ColConv::fits, "not few pixels with many weights");
}
Kernel make_columns(Prepare& p, const ConvProblem& c) {
  return planned(p, c,
                 std::make_shared<simd::Im2ColConv>(folded(c.shape), c.kind, c.operands.bias >= 0));
}

std::string no_gemm(const Prepare& p, const ConvProblem& c) {
  auto fits = [&](const ConvShape& s) { return simd::PatchConv::fits(s, c.kind); };
  return refuse_unless(p, c, fits, "windows overlap, or a convolution is faster");
}
Kernel make_gemm(Prepare& p, const ConvProblem& c) {
  auto plan = std::make_shared<simd::PatchConv>(folded(c.shape), c.kind, c.operands.bias >= 0);
  fix_weights(p, c, *plan);
  return planned(p, c, plan);
}

std::string no_grouped(const Prepare& p, const ConvProblem& c) {
  auto fits = [&](const ConvShape& s) {
    return simd::GroupedConv::fits(s, c.kind) ||
           (!general::kConvIsFastForDepthwise && simd::GroupedConv::is_depthwise(s));
  };
  return refuse_unless(p, c, fits, "not groups of few channels");
}
Kernel make_grouped(Prepare& p, const ConvProblem& c) {
  return planned(p, c,
                 std::make_shared<simd::GroupedConv>(folded(c.shape), c.kind, p.pool().threads()));
}

std::string no_grad_w(const Prepare& p, const ConvProblem& c) {
  if (c.kind != ConvPass::kWeightGradient) return "only for the gradient of the weights";
  return refuse_unless(p, c, simd::ConvGradW::fits, "groups or few channels");
}
Kernel make_grad_w(Prepare& p, const ConvProblem& c) {
  return planned_gradient(p, c, std::make_shared<simd::ConvGradW>(folded(c.shape)));
}

std::string no_general(const Prepare& p, const ConvProblem& c) {
  if (p.in(0).dtype != DType::kFloat && !is_16bit_float(p.in(0).dtype)) return "needs float32";
  if (c.shape.window.dims() > 3) return "more than 3 spatial dimensions";
  if (begins_late(c.shape)) return "no window reaches the first columns";
  return empty(c.shape) ? "an empty tensor" : "";
}

Kernel make_general(Prepare& p, const ConvProblem& c) {
  bool last = is_channels_last(p.node());
  const ConvOperands& o = c.operands;
  std::string why;
  std::shared_ptr<general::ConvPlan> plan = general::ConvPlan::make(
      last ? folded(c.shape) : c.shape, c.kind, o.bias >= 0, last, p.pool().threads(), &why);
  if (!plan) return p.refuse(std::move(why));
  fix_weights(p, c, *plan);
  p.workspace = plan->workspace();
  return [plan, o](const Run& r) {
    auto get = [&](int i) { return i < 0 ? nullptr : r.in<float>(i); };
    plan->run({get(o.x), get(o.w), get(o.bias), get(o.dy), r.out<float>(0)}, r.workspace, *r.pool);
  };
}

// ---------------------------------------------------------------- the definition
template <class T>
Kernel by_definition_first(const ConvProblem& c) {
  return [c](const Run& r) {
    auto get = [&](int i) { return i < 0 ? nullptr : r.in<T>(i); };
    const ConvOperands& o = c.operands;
    T* out = r.out<T>(0);
    if (c.kind == ConvPass::kForward)
      kernels::conv_ref(c.shape, get(o.x), get(o.w), get(o.bias), out, *r.pool);
    else if (c.kind == ConvPass::kInputGradient)
      kernels::conv_grad_x_ref(c.shape, get(o.dy), get(o.w), get(o.bias), out, *r.pool);
    else
      kernels::conv_grad_w_ref(c.shape, get(o.dy), get(o.x), out, *r.pool);
  };
}

template <class T>
Kernel by_definition_last(Prepare& p, const ConvProblem& c) {
  const kernels::ConvShape& s = c.shape;
  ConvPass kind = c.kind;
  ConvOperands o = c.operands;
  auto copy = [](int64_t channels, int64_t pixels, int64_t batch, bool to_last) {
    Shape dims{batch, to_last ? pixels : channels, to_last ? channels : pixels};
    Shape src{channels * pixels, 1, to_last ? pixels : channels}, dst = strides_of(dims);
    return StridedCopy(DTypeOf<T>::value, dims, src, dst);
  };
  int64_t in = s.window.in_size(), out = s.window.out_size();
  StridedCopy x_first = copy(s.in_channels, in, s.batch, false),
              dy_first = copy(s.out_channels, out, s.batch, false),
              y_last = copy(s.out_channels, out, s.batch, true),
              dx_last = copy(s.in_channels, in, s.batch, true);
  int64_t x_size = s.batch * s.in_channels * in, y_size = s.batch * s.out_channels * out;
  p.workspace = size_t(x_size + y_size) * sizeof(T);
  return [=, s = c.shape](const Run& r) {
    auto get = [&](int i) { return i < 0 ? nullptr : r.in<T>(i); };
    T *x = static_cast<T*>(r.workspace), *y = x + x_size;
    if (o.x >= 0) x_first.run(*r.pool, r.inputs[o.x], x);
    if (o.dy >= 0) dy_first.run(*r.pool, r.inputs[o.dy], y);
    if (kind == ConvPass::kForward) {
      kernels::conv_ref(s, x, get(o.w), get(o.bias), y, *r.pool);
      y_last.run(*r.pool, y, r.outputs[0]);
    } else if (kind == ConvPass::kInputGradient) {
      kernels::conv_grad_x_ref(s, y, get(o.w), get(o.bias), x, *r.pool);
      dx_last.run(*r.pool, x, r.outputs[0]);
    } else {
      kernels::conv_grad_w_ref(s, y, x, r.out<T>(0), *r.pool);
    }
  };
}

}  // namespace

template <class T>
Kernel conv_by_definition(Prepare& p, const ConvProblem& c) {
  return is_channels_last(p.node()) ? by_definition_last<T>(p, c) : by_definition_first<T>(c);
}
template Kernel conv_by_definition<float>(Prepare&, const ConvProblem&);
template Kernel conv_by_definition<double>(Prepare&, const ConvProblem&);

const ConvWay& conv_way(int k) {
  static const ConvWay ways[kConvWays] = {{"winograd", no_winograd, make_winograd},
                                          {"columns", no_columns, make_columns},
                                          {"gemm", no_gemm, make_gemm},
                                          {"grouped", no_grouped, make_grouped},
                                          {"simd", no_grad_w, make_grad_w},
                                          {general::kConvName, no_general, make_general}};
  return ways[k];
}

}  // namespace onnxtrain::ops
