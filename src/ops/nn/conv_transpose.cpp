// ConvTranspose: the gradient of a convolution with respect to its input, used forwards.
#include "ops/common/lower_shape.hpp"
#include "ops/nn/conv_kernel.hpp"
#include "ops/nn/window_shape.hpp"

namespace onnxtrain::ops {

namespace {

using kernels::ConvShape;

constexpr int64_t kMost = (int64_t(1) << 31) - 1;

std::vector<int64_t> optional_ints(const Node& n, const char* key, size_t dims, int64_t low) {
  std::vector<int64_t> v = n.ints(key);
  if (v.empty()) return v;
  // output_shape may name batch and channels too
  if (v.size() == dims + 2 && std::string_view(key) == "output_shape")
    v.erase(v.begin(), v.begin() + 2);
  if (v.size() != dims)
    model_error("OT1140", cat("attribute ", key, " of ", n.label(), " has ", v.size(), " entries, ",
                              dims, " are needed"));
  for (int64_t e : v)
    if (e < low || e > kMost)
      model_error("OT1140", cat("attribute ", key, " of ", n.label(), " has the entry ", e));
  return v;
}

// The convolution whose gradient this is: its input is our output and the other way round.
ConvShape problem_of(const Node& n, const Shape& x, const Shape& w) {
  Shape spatial = spatial_of(x, "ConvTranspose");
  size_t dims = spatial.size();
  int64_t group = n.i("group", 1);
  if (w.size() != x.size() || group < 1 || group > kMost || w[0] != x[1] || w[0] % group != 0)
    model_error("OT1142", cat("weights ", to_string(w), " with group ", group,
                              " do not fit an input of shape ", to_string(x)));
  ConvShape s;
  s.batch = x[0], s.groups = group, s.out_channels = x[1],
  s.in_channels = num_elements({w[1], group});
  kernels::Window& v = s.window;
  v.out = spatial;
  v.kernel = Shape(w.begin() + 2, w.end());
  if (Shape k = n.ints("kernel_shape"); !k.empty() && k != v.kernel)
    model_error("OT1142", cat("kernel_shape ", to_string(k), " of ", n.label(),
                              " differs from its weights ", to_string(w)));
  v.strides = positive_ints(n, "strides", dims);
  v.dilations = positive_ints(n, "dilations", dims);
  std::vector<int64_t> pads = pads_of(n, dims), extra = optional_ints(n, "output_padding", dims, 0);
  std::vector<int64_t> wanted = optional_ints(n, "output_shape", dims, 1);
  std::string mode = auto_pad_of(n);
  bool same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  for (size_t d = 0; d < dims; ++d) {
    if (v.kernel[d] < 1 || v.kernel[d] > kMost || spatial[d] > kMost)
      model_error("OT1141", cat("a window of ", to_string(v.kernel), " over ", to_string(spatial)));
    int64_t reach = v.strides[d] * (spatial[d] - 1) + (v.kernel[d] - 1) * v.dilations[d] + 1 +
                    (extra.empty() ? 0 : extra[d]);
    int64_t begin = pads[d], end = pads[dims + d], size;
    if (mode == "VALID") begin = end = 0;
    if (!wanted.empty() || same) {
      size = wanted.empty() ? spatial[d] * v.strides[d] : wanted[d];
      // Less than 0 where strides are larger than windows: the standard's equations go on to hold,
      // columns that no window reaches come on both sides. (onnxruntime's output is smaller then.)
      int64_t total = same ? reach - size : std::max<int64_t>(0, reach - size);
      int64_t half = total >= 0 ? total / 2 : -((1 - total) / 2);
      begin = mode == "SAME_UPPER" ? half : total - half;
      end = total - begin;
    } else {
      size = reach - begin - end;
    }
    if (spatial[d] == 0) size = std::max<int64_t>(size, 0);
    if (size < 0 || size > (int64_t(1) << 40))
      model_error("OT1141", cat("the output of ", n.label(), " would be ", size,
                                " wide in spatial dimension ", d));
    v.in.push_back(size);
    v.pads_begin.push_back(begin);
    v.pads_end.push_back(end);
  }
  return s;
}

void shape(ShapeCtx& c) {
  ConvShape s = problem_of(c.node(), c.shape(0), c.shape(1));
  check_conv_bias(c, s.in_channels);
  c.set(0, c.dtype(0), with_channels(s.batch, s.in_channels, s.window.in));
}

ConvShape problem(const Prepare& p) {
  return problem_of(p.node(), channels_first(p.node(), p.in(0).shape), p.in(1).shape);
}
ConvProblem transposed(const Prepare& p) {
  return {
      problem(p), ConvPass::kInputGradient, {.x = -1, .w = 1, .dy = 0, .bias = p.has(2) ? 2 : -1}};
}

Cost cost(const Prepare& p) { return conv_cost(p, problem(p)); }

// Columns of y that no window reaches carry no gradient and would make the convolution back one
// longer: they are cut off. Known shapes say how many there are.
ValueId reached(GradBuilder& b, ConvShape& s, ValueId dy) {
  kernels::Window& w = s.window;
  std::vector<int64_t> axes, starts, ends;
  for (size_t d = 0; d < w.dims(); ++d) {
    int64_t before = std::max<int64_t>(0, -w.pads_begin[d]);
    int64_t reach =
        (w.out[d] - 1) * w.strides[d] + (w.kernel[d] - 1) * w.dilations[d] + 1 - w.pads_begin[d];
    int64_t end = w.in[d] - reach < w.strides[d] ? w.in[d] : std::max<int64_t>(1, reach);
    if (before == 0 && end == w.in[d]) continue;
    axes.push_back(int64_t(d) + 2), starts.push_back(before), ends.push_back(end);
    w.in[d] = end - before;
    w.pads_begin[d] += before;
  }
  if (axes.empty()) return dy;
  return b.call("Slice",
                {dy, b.constant_ints(starts), b.constant_ints(ends), b.constant_ints(axes)});
}

std::vector<ValueId> grad(GradBuilder& b) {
  std::vector<ValueId> g(size_t(b.inputs()), kNone);
  if (b.has(2) && b.wants(2)) g[2] = bias_grad(b, b.dy());
  if (!b.wants(0) && !b.wants(1)) return g;
  ConvShape s = problem_of(b.node(), lowering_shape_of_one(b, kNone, b.x(0), "its input"),
                           lowering_shape(b, kNone, b.x(1), "its weights"));
  ValueId dy = reached(b, s, b.dy());
  const kernels::Window& w = s.window;
  std::vector<int64_t> pads = w.pads_begin;
  for (size_t d = 0; d < w.dims(); ++d) {
    // exactly the padding that makes the convolution as long as x
    int64_t reach =
        (w.out[d] - 1) * w.strides[d] + (w.kernel[d] - 1) * w.dilations[d] + 1 - w.pads_begin[d];
    pads.push_back(std::max<int64_t>(0, reach - w.in[d]));
  }
  GradBuilder::Attrs a{
      {"strides", w.strides}, {"dilations", w.dilations}, {"group", s.groups}, {"pads", pads}};
  if (b.wants(0)) g[0] = b.call("Conv", {dy, b.x(1)}, a);
  if (b.wants(1)) g[1] = b.own("ConvGradW", {b.x(0), dy, b.shape_of(b.x(1))}, a);
  return g;
}

}  // namespace

void register_conv_transpose(OpTable& t) {
  t.add({.name = "ConvTranspose",
         .shape = shape,
         .impls = ConvKernels<transposed>::all(),
         .grad = grad,
         .cost = cost,
         .channels_last =
             ChannelsLast{.in = {0}, .out = {0}, .gains = true, .applies = conv_channels_last}});
}

}  // namespace onnxtrain::ops
