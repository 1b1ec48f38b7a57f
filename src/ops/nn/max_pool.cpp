// MaxPool with its Indices, GlobalMaxPool, and MaxPoolGrad(dy, x): the gradient goes to the first
// largest element of each window, as in PyTorch.
#include "op/needs_shape.hpp"
#include "ops/common/cost.hpp"
#include "ops/common/lower_shape.hpp"
#include "ops/common/wide.hpp"
#include "ops/nn/pool_shape.hpp"

namespace onnxtrain::ops {

namespace {

void max_pool_shape(ShapeCtx& c) {
  pool_shape(c);
  int64_t order = c.node().i("storage_order", 0);
  if (order != 0 && order != 1) model_error("OT1140", cat("storage_order of MaxPool is ", order));
  if (c.outputs() > 1) c.set(1, DType::kInt64, c.out[0].shape);
}

int64_t planes_of(const Prepare& p, int input) {
  return p.in(input).shape[0] * p.in(input).shape[1];
}

template <class T>
Kernel make_max(Prepare& p) {
  kernels::Window w = pool_window(p.node(), p.in(0).shape);
  int64_t planes = planes_of(p, 0);
  if (p.wants(1)) {
    bool column_major = p.node().i("storage_order", 0) == 1;
    return [=](const Run& r) {
      kernels::max_pool_indices(w, planes, column_major, r.in<T>(0), r.out<T>(0), r.out<int64_t>(1),
                                *r.pool);
    };
  }
  return [=](const Run& r) { kernels::max_pool(w, planes, r.in<T>(0), r.out<T>(0), *r.pool); };
}

Kernel make_max_pool(Prepare& p) {
  if (is_16bit_float(p.in(0).dtype)) return in_float(p, make_max<float>);
  return dispatch<float, double, int8_t, uint8_t>(p.in(0).dtype, p.node().op,
                                                  [&]<class T>() { return make_max<T>(p); });
}

struct MaxGrad {
  template <class T>
  static Kernel make(Prepare& p) {
    kernels::Window w = pool_window(p.node(), p.in(1).shape);
    int64_t planes = planes_of(p, 1);
    return [=](const Run& r) {
      kernels::max_pool_grad(w, planes, r.in<T>(0), r.in<T>(1), r.out<T>(0), *r.pool);
    };
  }
};

Kernel make_max_last(Prepare& p) {
  auto plan = channel_pool(p.node(), p.in(0).shape);
  return [plan](const Run& r) { plan->max(*r.pool, r.in<float>(0), r.out<float>(0)); };
}
Kernel make_max_grad_last(Prepare& p) {
  auto plan = channel_pool(p.node(), p.in(1).shape);
  return [plan](const Run& r) {
    plan->max_grad(*r.pool, r.in<float>(0), r.in<float>(1), r.out<float>(0));
  };
}

std::vector<ValueId> max_pool_grad(GradBuilder& b) {
  return {b.own("MaxPoolGrad", {b.dy(), b.x(0)}, pool_attrs(b.node()))};
}

// Where each maximum of x was, counted over the whole tensor; by the standard operator.
ValueId indices_of(GradBuilder& b, ValueId x) {
  GradBuilder::Attrs a = window_attrs(b.node());
  if (is_global(b.node()))
    a["kernel_shape"] = spatial_of(lowering_shape(b, kNone, x, "its input"), "GlobalMaxPool");
  return b.call_n("MaxPool", {x}, 2, a)[1];
}

std::vector<ValueId> grad_lower(GradBuilder& b) {
  if (b.opset() < 16)
    needs_shape("OT1206", "the gradient of MaxPool in standard operators needs opset 16");
  ValueId dy = b.x(0), x = b.x(1), all = b.constant_ints({-1});
  ValueId at = b.call("Reshape", {indices_of(b, x), all});
  ValueId zeros = b.call("Reshape", {b.zeros_like(x), all});
  ValueId updates = b.call("Reshape", {dy, all});
  ValueId flat = scatter_sum(b, "ScatterElements", zeros, at, updates, {{"axis", int64_t(0)}});
  return {b.reshape_like(flat, x)};
}

// MaxPoolGrad is linear in dy: the second gradient picks what arrived at the maxima.
std::vector<ValueId> max_grad_grad(GradBuilder& b) {
  ValueId flat = b.call("Reshape", {b.dy(), b.constant_ints({-1})});
  return {b.call("Gather", {flat, indices_of(b, b.x(1))}, {{"axis", int64_t(0)}}), kNone};
}

}  // namespace

void register_max_pool(OpTable& t) {
  const ChannelsLast one{.in = {0}, .out = {0}, .applies = pool_channels_last};
  t.add({.name = "MaxPool",
         .shape = max_pool_shape,
         .impls = {{"last", pool_refuses_last, make_max_last}, {"ref", nullptr, make_max_pool}},
         .grad = max_pool_grad,
         .cost = cost_per_element<1>,
         .channels_last = one});
  t.add({.name = "GlobalMaxPool",
         .shape = pool_shape,
         .impls = {{"last", pool_refuses_last, make_max_last}, {"ref", nullptr, make_max_pool}},
         .grad = max_pool_grad,
         .cost = cost_per_element<1>,
         .channels_last = one});
  t.add({.name = "MaxPoolGrad",
         .domain = std::string(kOwnDomain),
         .shape = pool_grad_shape,
         .impls = {{"last", pool_refuses_last, make_max_grad_last},
                   {"ref", nullptr, float_or_double<MaxGrad>}},
         .grad = max_grad_grad,
         .cost = cost_per_element<1>,
         .channels_last = ChannelsLast{.in = {0, 1}, .out = {0}, .applies = pool_channels_last},
         .lower = grad_lower});
}

}  // namespace onnxtrain::ops
