// PRelu: the slope broadcasts to the data; before opset 7 it is one number or one per channel.
#include "ops/common/elementwise_kernel.hpp"
#include "ops/common/expr.hpp"

namespace onnxtrain::ops {

namespace {

Shape slope_shape(int version, const Shape& x, const Shape& slope) {
  if (num_elements(slope) == 1) return {};
  if (version >= 7 || slope.size() != 1 || x.size() < 2) return slope;
  Shape s(x.size() - 1, 1);
  s[0] = slope[0];
  return s;
}

void shape(ShapeCtx& c) {
  broadcast_strides(slope_shape(c.version(), c.shape(0), c.shape(1)), c.shape(0));
  c.set(0, c.dtype(0), c.shape(0));
}

Kernel make(Prepare& p) {
  BroadcastLoop loop({p.in(0).shape, slope_shape(p.version(), p.in(0).shape, p.in(1).shape)},
                     p.out(0).shape);
  return dispatch<float, double, Half, BFloat16, int32_t, int64_t, uint32_t, uint64_t>(
      p.in(0).dtype, "PRelu", [&]<class T>() -> Kernel {
        using C = compute_t<T>;
        return [loop](const Run& r) {
          const T *x = r.in<T>(0), *slope = r.in<T>(1);
          T* y = r.out<T>(0);
          int64_t step = loop.step[1];
          parallel_for(*r.pool, loop.rows, loop.grain_rows(), [&](int64_t b, int64_t e) {
            loop.run(b, e, [&](int64_t o, const int64_t* at) {
              for (int64_t i = 0; i < loop.inner; ++i) {
                C v = C(x[at[0] + i]);
                y[o + i] = v < C(0) ? T(C(v * C(slope[at[1] + i * step]))) : T(v);
              }
            });
          });
        };
      });
}

std::vector<ValueId> rule(GradBuilder& b) {
  Expr x{b, b.x(0)}, dy{b, b.dy()}, slope{b, b.x(1)};
  ValueId given = b.x(1);
  bool channels = b.node().version < 7 && b.rank(given) == 1 && b.need_rank(x.v) > 2 &&
                  !(b.shape_known(given) && num_elements(b.shape(given)) == 1);
  if (channels) {
    std::vector<int64_t> axes;
    for (int64_t d = 1; d < b.rank(x.v) - 1; ++d) axes.push_back(d);
    slope = Expr{b, b.unsqueeze(given, axes)};
  }
  Expr positive = x > 0;
  std::vector<ValueId> g(2, kNone);
  if (b.wants(0)) g[0] = where(positive, dy, dy * slope).v;
  if (b.wants(1)) {
    ValueId d = where(positive, x.num(0), dy * x).v;
    // a slope of one element may have more dimensions than the data
    if (b.shape_known(given) && num_elements(b.shape(given)) == 1)
      d = b.call("ReduceSum", {d}, {{"keepdims", int64_t(0)}});
    else
      d = b.sum_to_shape_of(d, slope.v);
    g[1] = b.reshape_like(d, given);
  }
  return g;
}

}  // namespace

void register_prelu(OpTable& t) {
  t.add({.name = "PRelu",
         .shape = shape,
         .impls = {{"ref", nullptr, make}},
         .grad = rule,
         .in_place = {{0, 0}}});
}

}  // namespace onnxtrain::ops
