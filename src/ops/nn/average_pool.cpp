// AveragePool, GlobalAveragePool and AveragePoolGrad(dy, shape of x).
#include "ops/common/cost.hpp"
#include "ops/common/lower_shape.hpp"
#include "ops/common/wide.hpp"
#include "ops/nn/conv_shape.hpp"
#include "ops/nn/pool_shape.hpp"

namespace onnxtrain::ops {

namespace {

bool includes_pad(const Node& n) { return n.i("count_include_pad", 0) != 0; }

struct Average {
  template <class T>
  static Kernel make(Prepare& p) {
    kernels::Window w = pool_window(p.node(), p.in(0).shape);
    int64_t planes = p.in(0).shape[0] * p.in(0).shape[1];
    CountedVector<T> counts = kernels::tap_counts<T>(w, includes_pad(p.node()));
    return [=](const Run& r) {
      kernels::average_pool(w, planes, counts.data(), r.in<T>(0), r.out<T>(0), *r.pool);
    };
  }
};

// dx of a whole-plane average is constant over the plane.
template <class T>
Kernel make_global_grad(int64_t planes, int64_t size) {
  return [=](const Run& r) {
    const T* dy = r.in<T>(0);
    T* dx = r.out<T>(0);
    int64_t grain = std::max<int64_t>(1, 32 * 1024 / std::max<int64_t>(1, size));
    parallel_for(*r.pool, planes, grain, [&](int64_t b, int64_t e) {
      for (int64_t p = b; p < e; ++p) std::fill_n(dx + p * size, size, dy[p] / T(size));
    });
  };
}

struct AverageGrad {
  template <class T>
  static Kernel make(Prepare& p) {
    const Shape& x = p.out(0).shape;
    kernels::Window w = pool_window(p.node(), x);
    int64_t planes = x[0] * x[1];
    if (is_global(p.node())) return make_global_grad<T>(planes, w.in_size());
    CountedVector<T> counts = kernels::tap_counts<T>(w, includes_pad(p.node()));
    return [=](const Run& r) {
      kernels::average_pool_grad(w, planes, counts.data(), r.in<T>(0), r.out<T>(0), *r.pool);
    };
  }
};

Kernel make_average_last(Prepare& p) {
  const Shape& x = p.in(0).shape;
  auto plan = channel_pool(p.node(), x);
  CountedVector<float> counts = kernels::tap_counts<float>(
      pool_window(p.node(), from_channels_last(x)), includes_pad(p.node()));
  return [plan, counts](const Run& r) {
    plan->average(*r.pool, counts.data(), r.in<float>(0), r.out<float>(0));
  };
}
Kernel make_average_grad_last(Prepare& p) {
  const Shape& x = p.out(0).shape;
  auto plan = channel_pool(p.node(), x);
  CountedVector<float> counts = kernels::tap_counts<float>(
      pool_window(p.node(), from_channels_last(x)), includes_pad(p.node()));
  return [plan, counts](const Run& r) {
    plan->average_grad(*r.pool, counts.data(), r.in<float>(0), r.out<float>(0));
  };
}

void average_grad_shape(ShapeCtx& c) {
  Shape x = c.ints(1);
  num_elements(x);
  set_pool_gradient(c, c.dtype(0), x);
}

std::vector<ValueId> average_grad(GradBuilder& b) {
  return {b.own("AveragePoolGrad", {b.dy(), b.shape_of(b.x(0))}, pool_attrs(b.node()))};
}

// Linear: the gradient of the gradient is the pool itself.
std::vector<ValueId> average_grad_grad(GradBuilder& b) {
  if (is_global(b.node())) return {b.call("GlobalAveragePool", {b.dy()}), kNone};
  return {b.call("AveragePool", {b.dy()}, window_attrs(b.node())), kNone};
}

// In float32 for 16-bit types, which cannot count beyond 65504 or 256.
ValueId divided(GradBuilder& b, ValueId dy, const std::vector<double>& counts, const Shape& shape) {
  if (b.dtype(dy) == DType::kDouble)
    return b.div(dy, b.tensor(Tensor::vector<double>(counts).reshaped(shape)));
  const std::vector<float> floats(counts.begin(), counts.end());
  const Expr by{b, b.tensor(Tensor::vector<float>(floats).reshaped(shape)), DType::kFloat};
  return b.cast_like((widened(Expr{b, dy}) / by).v, dy);
}

// dy divided by its counts, spread by a transposed depthwise convolution with ones.
std::vector<ValueId> average_lower(GradBuilder& b) {
  Shape x = lowering_shape_of_one(b, b.x(1), b.y(), "its input");
  kernels::Window w = pool_window(b.node(), x);
  ValueId dy = b.x(0);
  auto typed = [&](const std::vector<double>& v, Shape s) {
    return dispatch<float, double, Half, BFloat16>(b.dtype(dy), "AveragePoolGrad", [&]<class T>() {
      std::vector<T> e;
      for (double d : v) e.push_back(T(compute_t<T>(d)));
      return b.tensor(Tensor::vector<T>(e).reshaped(std::move(s)));
    });
  };
  const auto taps = kernels::tap_counts<double>(w, includes_pad(b.node()));
  const std::vector<double> counts(taps.begin(), taps.end());
  Shape count_shape = with_channels(1, 1, w.out);
  ValueId share = divided(b, dy, counts, count_shape);
  if (is_global(b.node())) return {b.call("Expand", {share, b.x(1)})};
  // one window, perhaps far larger than the input (ceil_mode): the part that touches it
  for (size_t d = 0; d < w.dims(); ++d)
    if (w.out[d] == 1)
      w.kernel[d] = std::min(w.kernel[d], (w.in[d] + w.pads_begin[d] - 1) / w.dilations[d] + 1);
  std::vector<int64_t> pads = w.pads_begin, extra;
  for (size_t d = 0; d < w.dims(); ++d) {
    int64_t reach =
        (w.out[d] - 1) * w.strides[d] + (w.kernel[d] - 1) * w.dilations[d] + 1 - w.pads_begin[d];
    pads.push_back(std::max<int64_t>(0, reach - w.in[d]));
    extra.push_back(std::max<int64_t>(0, w.in[d] - reach));
  }
  Shape kernel = with_channels(x[1], 1, w.kernel);
  ValueId ones = typed(std::vector<double>(size_t(num_elements(kernel)), 1.0), kernel);
  return {b.call("ConvTranspose", {share, ones},
                 {{"strides", w.strides},
                  {"dilations", w.dilations},
                  {"group", x[1]},
                  {"pads", pads},
                  {"output_padding", extra}})};
}

}  // namespace

void register_average_pool(OpTable& t) {
  const ChannelsLast one{.in = {0}, .out = {0}, .applies = pool_channels_last};
  for (const char* name : {"AveragePool", "GlobalAveragePool"})
    t.add({.name = name,
           .shape = pool_shape,
           .impls = {{"last", pool_refuses_last, make_average_last},
                     {"ref", nullptr, float_or_double<Average>}},
           .grad = average_grad,
           .cost = cost_per_element<1>,
           .channels_last = one});
  t.add({.name = "AveragePoolGrad",
         .domain = std::string(kOwnDomain),
         .shape = average_grad_shape,
         .shape_values = {1},
         .impls = {{"last", pool_refuses_last, make_average_grad_last},
                   {"ref", nullptr, float_or_double<AverageGrad>}},
         .grad = average_grad_grad,
         .cost = cost_per_element<1>,
         .channels_last = one,
         .lower = average_lower});
}

}  // namespace onnxtrain::ops
