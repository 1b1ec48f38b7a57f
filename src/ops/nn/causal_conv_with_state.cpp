// CausalConvWithState: a depthwise convolution over the past and now, with the state that a next
// call continues from.
#include <cmath>

#include "op/needs_shape.hpp"
#include "ops/common/widened_kernel.hpp"
#include "ops/nn/conv_shape.hpp"

namespace onnxtrain::ops {

namespace {

enum { kX, kW, kB, kPast };

bool has_silu(const Node& n) {
  std::string a = n.s("activation", "none");
  if (a != "none" && a != "silu" && a != "swish")
    model_error("OT1147", cat("activation of ", n.label(), " is '", a, "'"));
  return a != "none";
}

void shape(ShapeCtx& c) {
  const Shape &x = c.shape(kX), &w = c.shape(kW);
  has_silu(c.node());
  if (x.size() != 3 || w.size() != 3 || w[0] != x[1] || w[1] != 1 || w[2] < 1)
    model_error("OT1147",
                cat("weights ", to_string(w), " do not fit an input of shape ", to_string(x)));
  Shape state{x[0], x[1], w[2] - 1};
  if (c.has(kB) && c.shape(kB) != Shape{x[1]})
    model_error("OT1147", cat("the bias has shape ", to_string(c.shape(kB))));
  if (c.has(kPast) && c.shape(kPast) != state)
    model_error("OT1147", cat("past_state has shape ", to_string(c.shape(kPast))));
  c.set(0, c.dtype(kX), x);
  c.set(1, c.dtype(kX), state);
}

struct Forward {
  template <class T>
  static Kernel make(Prepare& p) {
    int64_t channels = p.in(kX).shape[1], n = p.in(kX).shape[2], k = p.in(kW).shape[2],
            rows = p.in(kX).shape[0] * channels;
    bool silu = has_silu(p.node()), bias = p.has(kB), past = p.has(kPast), state = p.wants(1);
    return [=](const Run& r) {
      parallel_for(*r.pool, rows, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, n * k)),
                   [&](int64_t b, int64_t e) {
                     for (int64_t row = b; row < e; ++row) {
                       const T *x = r.in<T>(kX) + row * n, *w = r.in<T>(kW) + row % channels * k;
                       const T* before = past ? r.in<T>(kPast) + row * (k - 1) : nullptr;
                       // element i of the past followed by x
                       auto at = [&](int64_t i) {
                         return i >= k - 1 ? x[i - (k - 1)] : before ? before[i] : T(0);
                       };
                       for (int64_t t = 0; t < n && r.outputs[0]; ++t) {
                         T sum = bias ? r.in<T>(kB)[row % channels] : T(0);
                         for (int64_t j = 0; j < k; ++j) sum += w[j] * at(t + j);
                         r.out<T>(0)[row * n + t] = silu ? sum / (T(1) + std::exp(-sum)) : sum;
                       }
                       for (int64_t j = 0; j < k - 1 && state; ++j)
                         r.out<T>(1)[row * (k - 1) + j] = at(n + j);
                     }
                   });
    };
  }
};

std::vector<ValueId> grad(GradBuilder& b) {
  using V = ValueId;
  std::vector<V> g(size_t(b.inputs()), kNone);
  V x = b.x(kX), w = b.x(kW);
  if (!b.shape_known(x) || !b.shape_known(w))
    needs_shape("OT1205", cat("the gradient of ", b.node().label(), " needs known shapes"));
  Shape xs = b.shape(x);
  int64_t k = b.shape(w)[2], n = xs[2];
  auto cut = [&](V v, int64_t from, int64_t to) {
    return b.call("Slice",
                  {v, b.constant_ints({from}), b.constant_ints({to}), b.constant_ints({2})});
  };
  V padded = b.has(kPast) ? b.call("Concat", {b.x(kPast), x}, {{"axis", int64_t(2)}})
                          : b.call("Pad", {x, b.constant_ints({0, 0, k - 1, 0, 0, 0})});
  GradBuilder::Attrs a{{"group", xs[1]}};
  V total = kNone;  // gradient of the padded input
  if (b.has_dy(0)) {
    V d = b.dy(0);
    if (has_silu(b.node())) {
      std::vector<V> in{padded, w};
      if (b.has(kB)) in.push_back(b.x(kB));
      V z = b.call("Conv", in, a), s = b.call("Sigmoid", {z}), one = b.scalar(1, z);
      d = b.mul(d, b.mul(s, b.add(one, b.mul(z, b.sub(one, s)))));
    }
    total = b.own("ConvGradX", {d, w, b.shape_of(padded)}, a);
    if (b.wants(kW)) g[kW] = b.own("ConvGradW", {d, padded, b.shape_of(w)}, a);
    if (b.has(kB) && b.wants(kB)) g[kB] = bias_grad(b, d);
  }
  if (b.has_dy(1) && k > 1) {
    V state = b.call("Pad", {b.dy(1), b.constant_ints({0, 0, n, 0, 0, 0})});
    total = total == kNone ? state : b.add(total, state);
  }
  if (total == kNone) return g;
  if (b.wants(kX)) g[kX] = cut(total, k - 1, INT64_MAX);
  if (b.has(kPast) && b.wants(kPast)) g[kPast] = cut(total, 0, k - 1);
  return g;
}

}  // namespace

void register_causal_conv_with_state(OpTable& t) {
  t.add({.name = "CausalConvWithState",
         .since = 27,
         .shape = shape,
         .impls = {{"ref", nullptr, float_or_double<Forward>}},
         .grad = grad});
}

}  // namespace onnxtrain::ops
