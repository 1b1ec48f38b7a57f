// Shared by the convolution operators.
#include "ops/nn/conv_shape.hpp"

#include "ops/common/cost.hpp"
#include "ops/nn/window_shape.hpp"

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

void check_conv_bias(const ShapeCtx& c, int64_t channels) {
  if (c.has(2) && c.shape(2) != Shape{channels})
    model_error("OT1142", cat("the bias has shape ", to_string(c.shape(2)), ", ", channels,
                              " channels need one each"));
}

bool conv_channels_last(const Graph& g, const Node& n) {
  const TypeInfo& t = g.value(n.inputs[0]).type;
  return t.elem == DType::kFloat && t.shape->size() >= 3 && t.shape->size() <= 5;
}

Cost conv_cost(const Prepare& p, const kernels::ConvShape& s) {
  return cost_of(p, 2.0 * double(s.batch * s.out_channels) * double(s.window.out_size()) *
                        double(s.in_per_group()) * double(s.window.taps()));
}

ValueId bias_grad(GradBuilder& b, ValueId dy) {
  std::vector<int64_t> axes{0};
  for (int64_t d = 2; d < b.need_rank(dy); ++d) axes.push_back(d);
  return b.reduce_sum(dy, axes, false);
}

}  // namespace onnxtrain::ops
