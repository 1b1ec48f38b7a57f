// Attributes to windows. All numbers here come from a file: each is checked before it is used.
#include "ops/nn/window_shape.hpp"

namespace onnxtrain::ops {

namespace {
constexpr int64_t kMost = (int64_t(1) << 31) - 1;

void check_size(const Node& n, const char* key, size_t got, size_t want) {
  if (got != want)
    model_error("OT1140", cat("attribute ", key, " of ", n.label(), " has ", got, " entries, ",
                              want, " are needed"));
}
}  // namespace

std::vector<int64_t> positive_ints(const Node& n, const char* key, size_t dims) {
  std::vector<int64_t> v = n.ints(key);
  if (v.empty()) return std::vector<int64_t>(dims, 1);
  check_size(n, key, v.size(), dims);
  for (int64_t e : v)
    if (e < 1 || e > kMost)
      model_error("OT1140", cat("attribute ", key, " of ", n.label(), " has the entry ", e));
  return v;
}

std::vector<int64_t> pads_of(const Node& n, size_t dims) {
  std::vector<int64_t> v = n.ints("pads");
  if (v.empty()) return std::vector<int64_t>(2 * dims, 0);
  check_size(n, "pads", v.size(), 2 * dims);
  for (int64_t e : v)
    if (e < 0 || e > kMost)
      model_error("OT1140", cat("attribute pads of ", n.label(), " has the entry ", e));
  return v;
}

std::string auto_pad_of(const Node& n) {
  std::string a = n.s("auto_pad", "NOTSET");
  if (a.empty()) a = "NOTSET";
  if (a != "NOTSET" && a != "SAME_UPPER" && a != "SAME_LOWER" && a != "VALID")
    model_error("OT1140", cat("attribute auto_pad of ", n.label(), " is '", a, "'"));
  return a;
}

Shape kernel_shape_of(const Node& n, size_t dims) {
  if (!n.has("kernel_shape"))
    model_error("OT1140", cat(n.label(), " has no attribute kernel_shape"));
  Shape k = n.ints("kernel_shape");
  check_size(n, "kernel_shape", k.size(), dims);
  return positive_ints(n, "kernel_shape", dims);
}

Shape spatial_of(const Shape& s, const char* what) {
  if (s.size() < 3 || s.size() > 2 + kernels::kMaxSpatial)
    model_error("OT1141", cat(what, " needs an input of shape [batch, channels, spatial...], got ",
                              to_string(s)));
  return Shape(s.begin() + 2, s.end());
}

kernels::Window window_of(const Node& n, const Shape& spatial, const Shape& kernel,
                          bool ceil_mode) {
  size_t dims = spatial.size();
  kernels::Window w;
  w.in = spatial;
  w.kernel = kernel;
  w.strides = positive_ints(n, "strides", dims);
  w.dilations = positive_ints(n, "dilations", dims);
  std::vector<int64_t> pads = pads_of(n, dims);
  std::string mode = auto_pad_of(n);
  for (size_t d = 0; d < dims; ++d) {
    int64_t s = w.strides[d], extent = (kernel[d] - 1) * w.dilations[d] + 1;
    if (kernel[d] < 1 || kernel[d] > kMost || spatial[d] > (int64_t(1) << 40))
      model_error("OT1141", cat("a window of ", to_string(kernel), " over ", to_string(spatial)));
    int64_t begin = pads[d], end = pads[dims + d], out;
    if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
      out = (spatial[d] + s - 1) / s;
      int64_t total = std::max<int64_t>(0, (out - 1) * s + extent - spatial[d]);
      begin = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
      end = total - begin;
    } else {
      if (mode == "VALID") begin = end = 0;
      int64_t room = spatial[d] + begin + end - extent;
      // rounding up, a window may be larger than the input, by less than one stride
      const bool larger = ceil_mode && room > -s && spatial[d] > 0;
      if (room < 0 && !larger)
        model_error("OT1141",
                    cat("the window of ", n.label(), " is ", extent, " wide in spatial dimension ",
                        d, ", the padded input only ", spatial[d] + begin + end));
      out = room / s + 1;
      if (ceil_mode && room > 0 && room % s != 0) {
        ++out;
        // a window must begin inside the input or its left padding
        if ((out - 1) * s >= spatial[d] + begin) --out;
      }
    }
    w.out.push_back(out);
    w.pads_begin.push_back(begin);
    w.pads_end.push_back(end);
  }
  return w;
}

Attributes window_attrs(const Node& n) {
  Attributes a;
  for (const char* key : {"strides", "dilations", "pads", "auto_pad", "group", "kernel_shape",
                          "ceil_mode", "count_include_pad", "p"})
    if (const Attr* v = n.find(key)) a[key] = *v;
  return a;
}

}  // namespace onnxtrain::ops
