// OneHot: indices become rows of off and on values; the gradient flows to those two values.
#include "op/grad_builder.hpp"
#include "ops/common/strided_copy_kernel.hpp"

namespace onnxtrain::ops {

namespace {

void shape(ShapeCtx& c) {
  if (c.in(2).size() != 2)
    model_error("OT1130", cat("values of OneHot has ", c.in(2).size(), " elements instead of 2"));
  const Tensor& d = c.value(1);
  if (d.size() != 1) model_error("OT1130", "depth of OneHot is not a scalar");
  double depth = d.to_doubles()[0];
  if (!(depth >= 0 && depth < 9e15)) model_error("OT1130", cat("depth of OneHot is ", depth));
  int64_t axis = normalize_axis(c.node().i("axis", -1), c.rank(0) + 1, "axis of OneHot");
  Shape s = c.shape(0);
  s.insert(s.begin() + axis, int64_t(depth));
  c.set(0, c.dtype(2), s);
}

Kernel make(Prepare& p) {
  const Shape& out = p.out(0).shape;
  int64_t axis = normalize_axis(p.node().i("axis", -1), int64_t(out.size()));
  int64_t depth = out[size_t(axis)], inner = product(out, size_t(axis) + 1, out.size());
  int64_t n = p.in(0).size();
  return dispatch<int64_t, int32_t, float, double, Half, uint8_t, int8_t, int16_t, uint16_t,
                  uint32_t, uint64_t>(p.in(0).dtype, "OneHot", [&]<class I>() -> Kernel {
    return dispatch_size(p.out(0).dtype, [&]<class T>() -> Kernel {
      return [=](const Run& r) {
        const T *values = r.in<T>(2), off = values[0], on = values[1];
        T* y = r.out<T>(0);
        std::fill_n(y, n * depth, off);
        for (int64_t k = 0; k < n; ++k) {
          double v = double(compute_t<I>(r.in<I>(0)[k]));
          if (!(v >= -double(depth) && v < double(depth))) continue;
          int64_t at = int64_t(v);
          if (at < 0) at += depth;
          if (at < 0 || at >= depth) continue;
          y[((k / inner) * depth + at) * inner + k % inner] = on;
        }
      };
    });
  });
}

std::vector<ValueId> grad(GradBuilder& b) {
  ValueId dy = b.dy(), one = b.scalar(1, b.x(2));
  ValueId first = b.unsqueeze(b.scalar(0, b.x(2)), {0}), second = b.unsqueeze(one, {0});
  ValueId ends = b.call("Concat", {first, second}, {{"axis", int64_t(0)}});
  ValueId mask = b.call("OneHot", {b.x(0), b.x(1), ends}, {{"axis", b.node().i("axis", -1)}});
  auto total = [&](ValueId v) {
    return b.call("Reshape",
                  {b.call("ReduceSum", {v}, {{"keepdims", int64_t(0)}}), b.constant_ints({1})});
  };
  ValueId on = total(b.mul(dy, mask)), off = total(b.mul(dy, b.sub(one, mask)));
  return {kNone, kNone, b.call("Concat", {off, on}, {{"axis", int64_t(0)}})};
}

}  // namespace

void register_one_hot(OpTable& t) {
  t.add({.name = "OneHot",
         .shape = shape,
         .shape_values = {1},
         .impls = {{"ref", nullptr, make}},
         .grad = grad,
         .settings_from = 1});
}

}  // namespace onnxtrain::ops
