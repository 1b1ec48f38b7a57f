// Coordinates and coefficients of Resize, as ONNX's reference defines them.
#include "ops/image/resize_taps.hpp"

#include <algorithm>
#include <cmath>

namespace onnxtrain::ops {

namespace {

constexpr double kMostTaps = 1 << 20;

struct Options {
  std::string mode, coordinates, nearest_mode;
  double cubic_a = -0.75;
  bool antialias = false, exclude_outside = false, legacy = false;
};

Options read_options(const Node& n, bool legacy) {
  Options o;
  o.legacy = legacy;
  o.mode = n.s("mode", "nearest");
  if (o.mode == "bilinear" || o.mode == "trilinear") o.mode = "linear";  // names of opset 1
  if (o.mode != "nearest" && o.mode != "linear" && o.mode != "cubic")
    model_error("OT1160", cat("mode of ", n.label(), " is '", o.mode, "'"));
  o.coordinates = legacy ? "asymmetric" : n.s("coordinate_transformation_mode", "half_pixel");
  o.nearest_mode = legacy ? "simple" : n.s("nearest_mode", "round_prefer_floor");
  bool known = false;
  for (const char* c : {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                        "asymmetric", "tf_crop_and_resize", "tf_half_pixel_for_nn"})
    known |= o.coordinates == c;
  if (!known)
    model_error("OT1160",
                cat("coordinate_transformation_mode of ", n.label(), " is '", o.coordinates, "'"));
  known = false;
  for (const char* c : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"})
    known |= o.nearest_mode == c;
  if (!known)
    model_error("OT1160", cat("nearest_mode of ", n.label(), " is '", o.nearest_mode, "'"));
  o.cubic_a = double(n.f("cubic_coeff_a", -0.75f));
  o.antialias = n.i("antialias", 0) != 0;
  o.exclude_outside = n.i("exclude_outside", 0) != 0;
  if (o.antialias && o.mode == "nearest")
    model_error("OT1160", cat(n.label(), " has antialias with mode nearest"));
  return o;
}

double source_of(const Options& o, double x, double scale, double in, double out, double roi_begin,
                 double roi_end) {
  double width = scale * in;
  if (o.coordinates == "align_corners") return width == 1 ? 0 : x * (in - 1) / (width - 1);
  if (o.coordinates == "asymmetric") return x / scale;
  if (o.coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / scale;
  if (o.coordinates == "tf_crop_and_resize") {
    double at = width == 1 ? (roi_end - roi_begin) * (in - 1) / 2
                           : x * (roi_end - roi_begin) * (in - 1) / (width - 1);
    return at + roi_begin * (in - 1);
  }
  if (o.coordinates == "pytorch_half_pixel" && width == 1) return -0.5;
  double at = (x + 0.5) / scale - 0.5;
  if (o.coordinates == "half_pixel_symmetric") at += in / 2 * (1 - out / width);
  return at;
}

double cubic(double x, double a) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

// Coefficients for inputs base + first, base + first + 1, ... where the source is base + ratio.
std::vector<double> coefficients(const Options& o, double ratio, double scale, int64_t& first) {
  if (o.mode == "nearest") {
    first = 0;
    bool up = ratio == 1;
    if (!up) {
      if (o.nearest_mode == "round_prefer_floor")
        up = ratio > 0.5;
      else if (o.nearest_mode == "round_prefer_ceil")
        up = ratio >= 0.5;
      else if (o.nearest_mode == "simple")
        up = scale < 1;
      else
        up = o.nearest_mode == "ceil";
    }
    first = up ? 1 : 0;
    return {1};
  }
  bool is_cubic = o.mode == "cubic";
  double reach = is_cubic ? 2 : 1, shrink = o.antialias ? std::min(scale, 1.0) : 1.0;
  first = int64_t(std::floor(-reach / shrink)) + 1;
  std::vector<double> c;
  double sum = 0;
  for (int64_t i = first; i < 2 - first; ++i) {
    double x = (double(i) - ratio) * shrink;
    c.push_back(is_cubic ? cubic(x, o.cubic_a) : std::clamp(1 - std::fabs(x), 0.0, 1.0));
    sum += c.back();
  }
  if (o.antialias)
    for (double& v : c) v /= sum;
  return c;
}

ResizeAxis make_axis(const Options& o, int64_t axis, int64_t in, int64_t out, double scale,
                     double roi_begin, double roi_end) {
  ResizeAxis a;
  a.axis = axis, a.in = in, a.out = out;
  if (out == 0) return a;
  if (size_t(out) > memory_limit() / 64)
    model_error("OT1160", cat("an output of ", out, " elements along axis ", axis,
                              " does not fit into memory"));
  if (o.antialias && 4 / std::min(1.0, scale) > kMostTaps)
    model_error("OT1160", cat("a scale of ", scale, " is too small"));
  a.outside.reserve(size_t(out));
  for (int64_t x = 0; x < out; ++x) {
    double at = source_of(o, double(x), scale, double(in), double(out), roi_begin, roi_end);
    bool outside = o.coordinates == "tf_crop_and_resize" && (at < 0 || at > double(in - 1));
    if (!(std::fabs(at) < 1e15))
      model_error("OT1160", cat("output ", x, " of axis ", axis, " has no source"));
    a.outside.push_back(outside);
    a.any_outside |= outside;
    double base = std::floor(at), ratio = at - base;
    // the pixel on the left is preferred: an exact hit is the right one of a pair
    if (ratio == 0) base -= 1, ratio = 1;
    int64_t first;
    std::vector<double> c = coefficients(o, ratio, scale, first);
    a.taps = int64_t(c.size());
    if (x == 0) {
      a.index.reserve(size_t(out) * c.size());
      a.weight.reserve(size_t(out) * c.size());
    }
    if (o.exclude_outside && o.mode != "nearest") {
      double sum = 0;
      for (size_t k = 0; k < c.size(); ++k) {
        int64_t i = int64_t(base) + first + int64_t(k);
        if (i < 0 || i >= in) c[k] = 0;
        sum += c[k];
      }
      for (double& v : c) v /= sum;
    }
    for (size_t k = 0; k < c.size(); ++k) {
      a.index.push_back(std::clamp<int64_t>(int64_t(base) + first + int64_t(k), 0, in - 1));
      a.weight.push_back(c[k]);
    }
  }
  return a;
}

std::vector<int64_t> axes_of(const Node& n, int64_t rank) {
  std::vector<int64_t> axes = n.ints("axes");
  if (!n.has("axes"))
    for (int64_t d = 0; d < rank; ++d) axes.push_back(d);
  std::vector<char> seen(size_t(rank), 0);
  for (int64_t& a : axes) {
    a = normalize_axis(a, rank, "axes of Resize");
    if (seen[size_t(a)]++)
      model_error("OT1160", cat("axis ", a, " of ", n.label(), " is named twice"));
  }
  return axes;
}

// Output sizes and scales per axis.
void sizes_and_scales(const Node& n, const Shape& in, const std::vector<int64_t>& axes,
                      const Tensor* scales_in, const Tensor* sizes_in, Shape& out,
                      std::vector<double>& scales) {
  out = in;
  scales.assign(in.size(), 1.0);
  bool by_size = sizes_in && sizes_in->size() > 0;
  const Tensor* given = by_size ? sizes_in : scales_in;
  if (!given || given->size() != int64_t(axes.size()))
    model_error("OT1160", cat(n.label(), " needs ", axes.size(), " scales or sizes, got ",
                              given ? given->size() : 0));
  if (by_size) {
    std::vector<int64_t> sizes = given->to_ints();
    std::string policy = n.s("keep_aspect_ratio_policy", "stretch");
    double chosen = 0;
    for (size_t k = 0; k < axes.size(); ++k) {
      size_t a = size_t(axes[k]);
      if (sizes[k] < 0 || in[a] == 0)
        model_error("OT1160", cat(n.label(), " makes size ", sizes[k], " of ", in[a]));
      scales[a] = double(sizes[k]) / double(in[a]);
      out[a] = sizes[k];
      bool better = policy == "not_larger" ? scales[a] < chosen : scales[a] > chosen;
      if (k == 0 || better) chosen = scales[a];
    }
    if (policy != "stretch") {
      if (policy != "not_larger" && policy != "not_smaller")
        model_error("OT1160", cat("keep_aspect_ratio_policy is '", policy, "'"));
      for (int64_t a : axes) {
        scales[size_t(a)] = chosen;
        out[size_t(a)] = std::llround(chosen * double(in[size_t(a)]));
      }
    }
    return;
  }
  std::vector<double> s = given->to_doubles();
  for (size_t k = 0; k < axes.size(); ++k) {
    size_t a = size_t(axes[k]);
    if (!(s[k] > 0) || s[k] * double(in[a]) > 1e15)
      model_error("OT1160", cat(n.label(), " has the scale ", s[k]));
    scales[a] = s[k];
    out[a] = int64_t(std::floor(s[k] * double(in[a])));
  }
}

}  // namespace

std::vector<double> axis_matrix(const ResizeAxis& a) {
  std::vector<double> matrix(size_t(num_elements({a.out, a.in})), 0.0);
  for (int64_t i = 0; i < a.out; ++i)
    for (int64_t t = 0; t < a.taps && !a.outside[size_t(i)]; ++t)
      matrix[size_t(i * a.in + a.index[size_t(i * a.taps + t)])] +=
          a.weight[size_t(i * a.taps + t)];
  return matrix;
}

ResizeSpec resize_spec(const Node& n, const Shape& in, bool legacy, const Tensor* roi,
                       const Tensor* scales_in, const Tensor* sizes_in, bool with_tables) {
  Options o = read_options(n, legacy);
  int64_t rank = int64_t(in.size());
  std::vector<int64_t> axes = axes_of(n, rank);
  ResizeSpec spec;
  spec.nearest = o.mode == "nearest";
  spec.extrapolation = double(n.f("extrapolation_value", 0));
  std::vector<double> scales, begin(in.size(), 0.0), end(in.size(), 1.0);
  sizes_and_scales(n, in, axes, scales_in, sizes_in, spec.out, scales);
  num_elements(spec.out);
  if (o.coordinates == "tf_crop_and_resize") {
    if (!roi || roi->size() != 2 * int64_t(axes.size()))
      model_error("OT1160", cat(n.label(), " needs a roi of ", 2 * axes.size(), " numbers"));
    std::vector<double> r = roi->to_doubles();
    for (size_t k = 0; k < axes.size(); ++k)
      begin[size_t(axes[k])] = r[k], end[size_t(axes[k])] = r[axes.size() + k];
  }
  for (size_t d = 0; d < in.size() && with_tables; ++d) {
    bool whole = begin[d] == 0 && end[d] == 1;
    if (spec.out[d] == in[d] && std::fabs(scales[d] - 1) < 1e-9 && whole) continue;
    if (in[d] == 0 && spec.out[d] > 0)
      model_error("OT1160", cat(n.label(), " makes size ", spec.out[d], " of nothing"));
    spec.axes.push_back(make_axis(o, int64_t(d), in[d], spec.out[d], scales[d], begin[d], end[d]));
  }
  return spec;
}

}  // namespace onnxtrain::ops
