// Clip: bounds are attributes before opset 11, optional scalar inputs after. Gradients flow to the
// bounds as well.
#include <limits>

#include "op/channels_last.hpp"
#include "ops/common/elementwise_kernel.hpp"
#include "ops/common/expr.hpp"

namespace onnxtrain::ops {

namespace {

void shape(ShapeCtx& c) {
  for (int i = 1; i <= 2; ++i) {
    if (!c.has(i)) continue;
    if (c.in(i).size() != 1)
      model_error("OT1133", cat("a bound of Clip has shape ", to_string(c.shape(i)), ", not []"));
    if (c.dtype(i) != c.dtype(0))
      model_error("OT1103", "a bound of Clip has another type than the data");
  }
  c.set(0, c.dtype(0), c.shape(0));
}

template <class T>
struct Bounds {
  using C = compute_t<T>;
  using L = std::numeric_limits<C>;
  // from attributes, or no bound at all
  C low = L::has_infinity ? C(-L::infinity()) : L::lowest(),
    high = L::has_infinity ? L::infinity() : L::max();
  bool low_input = false, high_input = false;
  explicit Bounds(const Prepare& p, int at) : low_input(p.has(at)), high_input(p.has(at + 1)) {
    const Node& n = p.node();
    if (n.has("min")) low = C(n.f("min", 0));
    if (n.has("max")) high = C(n.f("max", 0));
  }
  C min(const Run& r, int at) const { return low_input ? C(*r.in<T>(at)) : low; }
  C max(const Run& r, int at) const { return high_input ? C(*r.in<T>(at + 1)) : high; }
};

Kernel make(Prepare& p) {
  int64_t n = p.out(0).size();
  return dispatch<float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t,
                  uint16_t, uint32_t, uint64_t>(p.in(0).dtype, "Clip", [&]<class T>() -> Kernel {
    using C = compute_t<T>;
    Bounds<T> bounds(p, 1);
    return [n, bounds](const Run& r) {
      C low = bounds.min(r, 1), high = bounds.max(r, 1);
      const T* x = r.in<T>(0);
      T* y = r.out<T>(0);
      // NaN passes; with crossed bounds the upper one wins, as in numpy and PyTorch
      parallel_for(*r.pool, n, kGrain, [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i) {
          C v = C(x[i]);
          v = v < low ? low : v;
          y[i] = T(v > high ? high : v);
        }
      });
    };
  });
}

// ClipGrad(dy, x, min?, max?) -> dx
Kernel make_grad(Prepare& p) {
  int64_t n = p.out(0).size();
  return dispatch<float, double, Half, BFloat16>(
      p.in(0).dtype, "ClipGrad", [&]<class T>() -> Kernel {
        using C = compute_t<T>;
        Bounds<T> bounds(p, 2);
        return [n, bounds](const Run& r) {
          C low = bounds.min(r, 2), high = bounds.max(r, 2);
          const T *dy = r.in<T>(0), *x = r.in<T>(1);
          T* dx = r.out<T>(0);
          parallel_for(*r.pool, n, kGrain, [&](int64_t b, int64_t e) {
            for (int64_t i = b; i < e; ++i) {
              C v = C(x[i]);
              dx[i] = v >= low && v <= high ? dy[i] : T(C(0));
            }
          });
        };
      });
}

using Grads = std::vector<ValueId>;

// Where x lies below min or above max; {kNone} without that bound.
struct Outside {
  ValueId below = kNone, above = kNone, low = kNone, high = kNone;
};
Outside outside(GradBuilder& b, ValueId x, int at) {
  Outside o;
  auto bound = [&](const char* attr, int i) -> ValueId {
    if (b.has(i)) return b.x(i);
    return b.node().has(attr) ? b.scalar(double(b.node().f(attr, 0)), x) : kNone;
  };
  o.low = bound("min", at);
  o.high = bound("max", at + 1);
  if (o.low != kNone) o.below = b.call("Less", {x, o.low});
  if (o.high != kNone) o.above = b.call("Greater", {x, o.high});
  return o;
}

Grads rule(GradBuilder& b) {
  Grads g(size_t(b.inputs()), kNone);
  ValueId x = b.x(0);
  std::vector<ValueId> in = {b.dy(), x};
  if (b.has(1) || b.has(2)) in.push_back(b.has(1) ? b.x(1) : kNone);
  if (b.has(2)) in.push_back(b.x(2));
  GradBuilder::Attrs attrs;
  for (const char* key : {"min", "max"})
    if (b.node().has(key)) attrs[key] = b.node().f(key, 0);
  g[0] = b.own("ClipGrad", in, attrs);
  bool low = b.has(1) && b.wants(1), high = b.has(2) && b.wants(2);
  if (!low && !high) return g;
  Outside o = outside(b, x, 1);
  ValueId zero = b.scalar(0, x), dy = b.dy();
  auto flow = [&](ValueId d, ValueId bound) {
    return b.reshape_like(b.call("ReduceSum", {d}, {{"keepdims", int64_t(0)}}), bound);
  };
  auto pick = [&](ValueId c, ValueId yes, ValueId no) { return b.call("Where", {c, yes, no}); };
  // with crossed bounds everything is max
  ValueId crossed = o.low != kNone && o.high != kNone ? b.call("Greater", {o.low, o.high}) : kNone;
  if (low) {
    ValueId d = pick(o.below, dy, zero);
    g[1] = flow(crossed == kNone ? d : pick(crossed, zero, d), b.x(1));
  }
  if (high) {
    ValueId d = pick(o.above, dy, zero);
    g[2] = flow(crossed == kNone ? d : pick(crossed, dy, d), b.x(2));
  }
  return g;
}

Grads lower(GradBuilder& b) {
  ValueId x = b.x(1);
  Outside o = outside(b, x, 2);
  ValueId d = b.x(0);
  for (ValueId out : {o.below, o.above})
    if (out != kNone) d = b.call("Where", {out, b.scalar(0, x), d});
  return {d};
}

void grad_shape(ShapeCtx& c) {
  if (c.shape(0) != c.shape(1)) model_error("OT1133", "ClipGrad: dy and x have different shapes");
  c.set(0, c.dtype(0), c.shape(0));
}

}  // namespace

void register_clip(OpTable& t) {
  const ChannelsLast elementwise{.elementwise = true};
  t.add({.name = "Clip",
         .shape = shape,
         .impls = {{"ref", nullptr, make}},
         .grad = rule,
         .in_place = {{0, 0}},
         .channels_last = elementwise,
         .settings_from = 1});
  t.add({.name = "ClipGrad",
         .domain = std::string(kOwnDomain),
         .shape = grad_shape,
         .impls = {{"ref", nullptr, make_grad}},
         .in_place = {{0, 0}, {1, 0}},
         .channels_last = elementwise,
         .lower = lower});
}

}  // namespace onnxtrain::ops
