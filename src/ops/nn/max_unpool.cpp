// MaxUnpool: puts each element where MaxPool found it.
#include "op/grad_builder.hpp"
#include "op/needs_shape.hpp"
#include "ops/common/widened_kernel.hpp"
#include "ops/nn/window_shape.hpp"

namespace onnxtrain::ops {

namespace {

// The output's shape without output_shape: indices count over it.
Shape inferred(const Node& n, const Shape& x) {
  Shape spatial = spatial_of(x, "MaxUnpool"), kernel = kernel_shape_of(n, spatial.size());
  std::vector<int64_t> strides = positive_ints(n, "strides", spatial.size()),
                       pads = pads_of(n, spatial.size());
  Shape out{x[0], x[1]};
  for (size_t d = 0; d < spatial.size(); ++d) {
    if (spatial[d] > (int64_t(1) << 31)) model_error("OT1141", cat("MaxUnpool of ", to_string(x)));
    out.push_back((spatial[d] - 1) * strides[d] - pads[d] - pads[spatial.size() + d] + kernel[d]);
    if (out.back() < 0) model_error("OT1141", cat("MaxUnpool makes a negative size ", out.back()));
  }
  return out;
}

void shape(ShapeCtx& c) {
  if (c.shape(0) != c.shape(1)) model_error("OT1141", "MaxUnpool needs one index for each element");
  Shape out = inferred(c.node(), c.shape(0));
  if (c.has(2)) {
    Shape given = c.ints(2);
    if (given.size() != out.size())
      model_error("OT1141", cat("output_shape ", to_string(given), " has another rank than ",
                                to_string(out)));
    for (size_t d = 0; d < out.size(); ++d)
      if (given[d] < out[d])
        model_error("OT1141",
                    cat("output_shape ", to_string(given), " is smaller than ", to_string(out)));
    out = given;
  }
  c.set(0, c.dtype(0), out);
}

struct Unpool {
  template <class T>
  static Kernel make(Prepare& p) {
    Shape from = inferred(p.node(), p.in(0).shape), to = p.out(0).shape, strides = strides_of(to);
    int64_t n = p.in(0).size(), limit = num_elements(from), size = num_elements(to);
    return [=](const Run& r) {
      const T* x = r.in<T>(0);
      const int64_t* at = r.in<int64_t>(1);
      T* y = r.out<T>(0);
      for (int64_t i = 0; i < n; ++i)
        if (at[i] < 0 || at[i] >= limit)
          data_error("OT1144", cat("index ", at[i], " of MaxUnpool is outside 0 to ", limit - 1));
      std::fill_n(y, size, T(0));
      for (int64_t i = 0; i < n; ++i) {
        int64_t rest = at[i], offset = 0;
        if (from == to) {
          offset = rest;
        } else {
          for (size_t d = from.size(); d-- > 0; rest /= from[d])
            offset += rest % from[d] * strides[d];
        }
        y[offset] = x[i];
      }
    };
  }
};

// What arrived at the places, picked by the same indices. A place that two elements share belongs
// to the last of them; ONNX's indices come from a MaxPool without overlap, where there are none.
std::vector<ValueId> grad(GradBuilder& b) {
  ValueId dy = b.dy();
  std::vector<ValueId> g(size_t(b.inputs()), kNone);
  if (b.has(2)) {
    if (!b.shape_known(b.x(0)))
      needs_shape("OT1205", cat("the gradient of ", b.node().label(), " needs its input's shape"));
    Shape from = inferred(b.node(), b.shape(b.x(0)));
    std::vector<int64_t> axes, starts(from.size(), 0);
    for (size_t d = 0; d < from.size(); ++d) axes.push_back(int64_t(d));
    dy = b.call("Slice",
                {dy, b.constant_ints(starts), b.constant_ints(from), b.constant_ints(axes)});
  }
  ValueId flat = b.call("Reshape", {dy, b.constant_ints({-1})});
  g[0] = b.call("Gather", {flat, b.x(1)}, {{"axis", int64_t(0)}});
  return g;
}

}  // namespace

void register_max_unpool(OpTable& t) {
  t.add({.name = "MaxUnpool",
         .shape = shape,
         .shape_values = {2},
         .impls = {{"ref", nullptr, float_or_double<Unpool>}},
         .grad = grad});
}

}  // namespace onnxtrain::ops
