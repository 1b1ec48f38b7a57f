// RoiAlign and MaxRoiPool: pools over regions of interest.
// NAMEGrad(dy, x, rois, [batch_indices], [z]) -> dx, drois: z (default x) is the image whose values
// decide the gradient of the regions, x the one whose maxima count.
// NAMEAt(z, x, rois, [batch_indices]): the pool of z where maxima are those of x; linear in z.
#include <cmath>

#include "ops/common/widened_kernel.hpp"
#include "ops/image/roi_lower.hpp"

namespace onnxtrain::ops {

namespace {

constexpr int64_t kMost = (int64_t(1) << 31) - 1;

bool is_align(const Node& n) { return n.op.starts_with("RoiAlign"); }

}  // namespace

RoiShape roi_shape(const Node& n, int version, const Shape& x, const Shape& rois) {
  RoiShape s;
  s.align = is_align(n);
  if (x.size() != 4 || rois.size() != 2 || rois[1] != (s.align ? 4 : 5))
    model_error("OT1167", cat("regions of shape ", to_string(rois),
                              " do not fit an input of shape ", to_string(x)));
  s.batch = x[0], s.channels = x[1], s.height = x[2], s.width = x[3], s.rois = rois[0];
  s.scale = n.f("spatial_scale", 1);
  if (s.align) {
    s.out_h = n.i("output_height", 1), s.out_w = n.i("output_width", 1),
    s.sampling = n.i("sampling_ratio", 0);
    std::string mode = n.s("mode", "avg"),
                where = n.s("coordinate_transformation_mode",
                            version < 16 ? "output_half_pixel" : "half_pixel");
    if (mode != "avg" && mode != "max")
      model_error("OT1167", cat("mode of ", n.label(), " is '", mode, "'"));
    if (where != "half_pixel" && where != "output_half_pixel")
      model_error("OT1167",
                  cat("coordinate_transformation_mode of ", n.label(), " is '", where, "'"));
    s.is_max = mode == "max";
    s.half_pixel = where == "half_pixel";
  } else {
    std::vector<int64_t> pooled = n.ints("pooled_shape");
    if (pooled.size() != 2)
      model_error("OT1167", cat("pooled_shape of ", n.label(), " needs two entries"));
    s.out_h = pooled[0], s.out_w = pooled[1], s.is_max = true;
  }
  if (s.out_h < 1 || s.out_w < 1 || s.out_h > kMost || s.out_w > kMost || s.sampling < 0 ||
      s.sampling > 4096 || !std::isfinite(s.scale))
    model_error("OT1167", cat(n.label(), " has an output of ", s.out_h, "x", s.out_w,
                              ", sampling_ratio ", s.sampling, ", spatial_scale ", s.scale));
  if (s.rois > 0 && s.height * s.width == 0) model_error("OT1167", "regions of an empty image");
  return s;
}

namespace {

// Attributes of the gradient node say everything, whatever version the forward node had.
GradBuilder::Attrs grad_attrs(GradBuilder& b) {
  GradBuilder::Attrs a = b.node().attrs;
  if (is_align(b.node()) && b.node().version < 16 && !a.count("coordinate_transformation_mode"))
    a["coordinate_transformation_mode"] = std::string("output_half_pixel");
  return a;
}

// Four pixels, their weights and the derivatives of those by y and x; zero outside.
template <class T>
struct Sample {
  int64_t at[4] = {0, 0, 0, 0};
  T weight[4] = {0, 0, 0, 0}, by_y[4] = {0, 0, 0, 0}, by_x[4] = {0, 0, 0, 0};
  Sample(const RoiShape& s, T y, T x) {
    if (!(y >= -1 && y <= T(s.height) && x >= -1 && x <= T(s.width))) return;
    T sy = y < 0 ? T(0) : T(1), sx = x < 0 ? T(0) : T(1);
    y = std::max(y, T(0)), x = std::max(x, T(0));
    int64_t y0 = int64_t(y), x0 = int64_t(x), y1 = y0 + 1, x1 = x0 + 1;
    if (y0 >= s.height - 1) y1 = y0 = s.height - 1, y = T(y0), sy = 0;
    if (x0 >= s.width - 1) x1 = x0 = s.width - 1, x = T(x0), sx = 0;
    T ly = y - T(y0), lx = x - T(x0);
    at[0] = y0 * s.width + x0, at[1] = y0 * s.width + x1, at[2] = y1 * s.width + x0,
    at[3] = y1 * s.width + x1;
    weight[0] = (1 - ly) * (1 - lx), weight[1] = (1 - ly) * lx, weight[2] = ly * (1 - lx),
    weight[3] = ly * lx;
    by_y[0] = -sy * (1 - lx), by_y[1] = -sy * lx, by_y[2] = sy * (1 - lx), by_y[3] = sy * lx;
    by_x[0] = -sx * (1 - ly), by_x[1] = sx * (1 - ly), by_x[2] = -sx * ly, by_x[3] = sx * ly;
  }
};

// One region of RoiAlign: calls f(sample, how far down and right in the region it lies) for each
// sampling point of a bin.
template <class T>
struct Region {
  const RoiShape& s;
  T x0, y0, bin_h, bin_w;
  int64_t grid_h, grid_w;
  bool fixed_h = false, fixed_w = false;  // the size does not follow the region
  Region(const RoiShape& shape, const T* roi) : s(shape) {
    T offset = s.half_pixel ? T(0.5) : T(0), scale = T(s.scale);
    x0 = roi[0] * scale - offset, y0 = roi[1] * scale - offset;
    T w = roi[2] * scale - offset - x0, h = roi[3] * scale - offset - y0;
    if (!s.half_pixel) {
      fixed_w = w < 1, fixed_h = h < 1;
      w = std::max(w, T(1)), h = std::max(h, T(1));
    }
    bin_h = h / T(s.out_h), bin_w = w / T(s.out_w);
    // a region cannot need more points per bin than some pixels around the image have
    auto points = [&](T bin, int64_t size) {
      return s.sampling > 0 ? s.sampling
                            : int64_t(std::clamp<T>(std::ceil(bin), 0, T(4 * size + 64)));
    };
    grid_h = std::isfinite(bin_h) ? points(bin_h, s.height) : 0,
    grid_w = std::isfinite(bin_w) ? points(bin_w, s.width) : 0;
  }
  int64_t count() const { return std::max<int64_t>(1, grid_h * grid_w); }
  template <class F>
  void samples(int64_t ph, int64_t pw, F&& f) const {
    for (int64_t iy = 0; iy < grid_h; ++iy)
      for (int64_t ix = 0; ix < grid_w; ++ix)
        f(Sample<T>(s, y0 + T(ph) * bin_h + (T(iy) + T(0.5)) * bin_h / T(grid_h),
                    x0 + T(pw) * bin_w + (T(ix) + T(0.5)) * bin_w / T(grid_w)),
          (T(ph) + (T(iy) + T(0.5)) / T(grid_h)) / T(s.out_h),
          (T(pw) + (T(ix) + T(0.5)) / T(grid_w)) / T(s.out_w));
  }
};

// The tap of a bin whose weighted pixel of x is largest.
template <class T>
struct Best {
  int64_t at = -1;
  T value = 0, weight = 0, by_y = 0, by_x = 0, down = 0, right = 0;
  Best(const Region<T>& region, int64_t ph, int64_t pw, const T* x) {
    region.samples(ph, pw, [&](const Sample<T>& p, T d, T r) {
      for (int k = 0; k < 4; ++k)
        if (T v = p.weight[k] * x[p.at[k]]; at < 0 || v > value)
          value = v, weight = p.weight[k], at = p.at[k], by_y = p.by_y[k], by_x = p.by_x[k],
          down = d, right = r;
    });
  }
};

// The pool of z where maxima are those of x.
template <class T>
T align_value(const Region<T>& region, int64_t ph, int64_t pw, const T* x, const T* z) {
  if (region.s.is_max) {
    Best<T> best(region, ph, pw, x);
    return best.at < 0 ? T(0) : best.weight * z[best.at];
  }
  T sum = 0;
  region.samples(ph, pw, [&](const Sample<T>& p, T, T) {
    for (int k = 0; k < 4; ++k) sum += p.weight[k] * z[p.at[k]];
  });
  return sum / T(region.count());
}

template <class T>
void align_back(const Region<T>& region, int64_t ph, int64_t pw, const T* x, T dy, T* dx) {
  if (region.s.is_max) {
    Best<T> best(region, ph, pw, x);
    if (best.at >= 0) dx[best.at] += best.weight * dy;
    return;
  }
  T share = dy / T(region.count());
  region.samples(ph, pw, [&](const Sample<T>& p, T, T) {
    for (int k = 0; k < 4; ++k) dx[p.at[k]] += p.weight[k] * share;
  });
}

// Adds the gradient of the four numbers of a region.
template <class T>
void region_back(const Region<T>& region, int64_t ph, int64_t pw, const T* x, const T* z, T dy,
                 T* droi) {
  T scale = T(region.s.scale);
  auto add = [&](T by_y, T by_x, T down, T right) {
    T far_y = region.fixed_h ? T(0) : down, far_x = region.fixed_w ? T(0) : right;
    droi[0] += by_x * scale * (1 - far_x), droi[1] += by_y * scale * (1 - far_y);
    droi[2] += by_x * scale * far_x, droi[3] += by_y * scale * far_y;
  };
  if (region.s.is_max) {
    Best<T> best(region, ph, pw, x);
    if (best.at >= 0)
      add(dy * best.by_y * z[best.at], dy * best.by_x * z[best.at], best.down, best.right);
    return;
  }
  T share = dy / T(region.count());
  region.samples(ph, pw, [&](const Sample<T>& p, T down, T right) {
    T by_y = 0, by_x = 0;
    for (int k = 0; k < 4; ++k) by_y += p.by_y[k] * z[p.at[k]], by_x += p.by_x[k] * z[p.at[k]];
    add(by_y * share, by_x * share, down, right);
  });
}

// Position of the maximum of a MaxRoiPool bin in its plane, or -1 when the bin is empty.
template <class T>
int64_t pool_max(const RoiShape& s, const T* roi, int64_t ph, int64_t pw, const T* plane) {
  auto pixel = [&](T v) {
    return std::isfinite(v * T(s.scale)) ? std::round(std::clamp<T>(v * T(s.scale), -1e9, 1e9))
                                         : T(0);
  };
  T x0 = pixel(roi[1]), y0 = pixel(roi[2]), x1 = pixel(roi[3]), y1 = pixel(roi[4]);
  T bin_h = std::max(y1 - y0 + 1, T(1)) / T(s.out_h),
    bin_w = std::max(x1 - x0 + 1, T(1)) / T(s.out_w);
  auto clip = [](T v, int64_t n) { return int64_t(std::clamp<T>(v, 0, T(n))); };
  int64_t h0 = clip(std::floor(T(ph) * bin_h) + y0, s.height),
          h1 = clip(std::ceil(T(ph + 1) * bin_h) + y0, s.height);
  int64_t w0 = clip(std::floor(T(pw) * bin_w) + x0, s.width),
          w1 = clip(std::ceil(T(pw + 1) * bin_w) + x0, s.width);
  int64_t at = -1;
  for (int64_t h = h0; h < h1; ++h)
    for (int64_t w = w0; w < w1; ++w)
      if (at < 0 || plane[h * s.width + w] > plane[at]) at = h * s.width + w;
  return at;
}

// The image of each region, checked.
template <class T>
int64_t image_of(const RoiShape& s, const Run& r, int first, int64_t roi) {
  int64_t b = s.align ? r.in<int64_t>(first + 1)[roi]
                      : int64_t(std::clamp<T>(r.in<T>(first)[roi * 5], -1, T(s.batch)));
  if (b < 0 || b >= s.batch)
    data_error("OT1168", cat("region ", roi, " names image ", b, " of ", s.batch));
  return b;
}

// Own forms say everything in their attributes, whatever version the forward node had.
int version_of(const Node& n) { return n.domain == kOwnDomain ? 16 : n.version; }
// Position of x: the own form NAMEAt has z before it.
int first_of(const Node& n) { return n.domain == kOwnDomain ? 1 : 0; }

void forward_shape(ShapeCtx& c) {
  int f = first_of(c.node());
  RoiShape s = roi_shape(c.node(), version_of(c.node()), c.shape(f), c.shape(f + 1));
  if (s.align && c.shape(f + 2) != Shape{s.rois})
    model_error("OT1167", "RoiAlign needs one batch index for each region");
  if (c.shape(0) != c.shape(f)) model_error("OT1167", "images of different shapes");
  c.set(0, c.dtype(0), {s.rois, s.channels, s.out_h, s.out_w});
}

struct Forward {
  template <class T>
  static Kernel make(Prepare& p) {
    int f = first_of(p.node());
    RoiShape s = roi_shape(p.node(), version_of(p.node()), p.in(f).shape, p.in(f + 1).shape);
    return [s, f](const Run& r) {
      const T *z = r.in<T>(0), *x = r.in<T>(f), *rois = r.in<T>(f + 1);
      T* y = r.out<T>(0);
      for (int64_t n = 0; n < s.rois; ++n) image_of<T>(s, r, f + 1, n);
      r.pool->run(s.rois, [&](int64_t n) {
        int64_t image = image_of<T>(s, r, f + 1, n);
        const T* roi = rois + n * (s.align ? 4 : 5);
        Region<T> region(s, roi);
        for (int64_t c = 0; c < s.channels; ++c)
          for (int64_t ph = 0; ph < s.out_h; ++ph)
            for (int64_t pw = 0; pw < s.out_w; ++pw) {
              int64_t at_plane = (image * s.channels + c) * s.height * s.width;
              const T *plane = x + at_plane, *values = z + at_plane;
              T& to = y[((n * s.channels + c) * s.out_h + ph) * s.out_w + pw];
              if (s.align) {
                to = align_value(region, ph, pw, plane, values);
              } else {
                int64_t at = pool_max(s, roi, ph, pw, plane);
                to = at < 0 ? T(0) : values[at];
              }
            }
      });
    };
  }
};

void grad_shape(ShapeCtx& c) {
  RoiShape s = roi_shape(c.node(), 16, c.shape(1), c.shape(2));
  if (c.shape(0) != Shape{s.rois, s.channels, s.out_h, s.out_w})
    model_error("OT1167", cat("dy has shape ", to_string(c.shape(0))));
  c.set(0, c.dtype(1), c.shape(1));
  c.set(1, c.dtype(2), c.shape(2));
}

// The gradient of the regions: a region is a task.
template <class T>
void regions_back(const RoiShape& s, const Run& r, const T* z, T* drois) {
  const T *dy = r.in<T>(0), *x = r.in<T>(1), *rois = r.in<T>(2);
  int64_t width = s.align ? 4 : 5;
  std::fill_n(drois, s.rois * width, T(0));
  if (!s.align) return;  // MaxRoiPool rounds its regions
  r.pool->run(s.rois, [&](int64_t n) {
    Region<T> region(s, rois + n * width);
    int64_t image = image_of<T>(s, r, 2, n);
    for (int64_t c = 0; c < s.channels; ++c)
      for (int64_t ph = 0; ph < s.out_h; ++ph)
        for (int64_t pw = 0; pw < s.out_w; ++pw) {
          int64_t plane = (image * s.channels + c) * s.height * s.width;
          region_back(region, ph, pw, x + plane, z + plane,
                      dy[((n * s.channels + c) * s.out_h + ph) * s.out_w + pw], drois + n * width);
        }
  });
}

struct Backward {
  template <class T>
  static Kernel make(Prepare& p) {
    RoiShape s = roi_shape(p.node(), 16, p.in(1).shape, p.in(2).shape);
    bool want_rois = p.wants(1), has_z = p.has(4);
    return [=](const Run& r) {
      const T *dy = r.in<T>(0), *x = r.in<T>(1), *rois = r.in<T>(2);
      T* dx = r.out<T>(0);
      for (int64_t n = 0; n < s.rois; ++n) image_of<T>(s, r, 2, n);
      if (want_rois) regions_back(s, r, has_z ? r.in<T>(4) : x, r.out<T>(1));
      if (!dx) return;
      // regions overlap: each channel is one task and takes them in order
      r.pool->run(s.channels, [&](int64_t c) {
        for (int64_t b = 0; b < s.batch; ++b)
          std::fill_n(dx + (b * s.channels + c) * s.height * s.width, s.height * s.width, T(0));
        for (int64_t n = 0; n < s.rois; ++n) {
          const T* roi = rois + n * (s.align ? 4 : 5);
          Region<T> region(s, roi);
          int64_t plane = (image_of<T>(s, r, 2, n) * s.channels + c) * s.height * s.width;
          for (int64_t ph = 0; ph < s.out_h; ++ph)
            for (int64_t pw = 0; pw < s.out_w; ++pw) {
              T g = dy[((n * s.channels + c) * s.out_h + ph) * s.out_w + pw];
              if (s.align) {
                align_back(region, ph, pw, x + plane, g, dx + plane);
              } else if (int64_t at = pool_max(s, roi, ph, pw, x + plane); at >= 0) {
                dx[plane + at] += g;
              }
            }
        }
      });
    };
  }
};

using Grads = std::vector<ValueId>;

// NAMEGrad with only the outputs that are asked for.
Grads roi_grad(GradBuilder& b, const std::string& op, std::vector<ValueId> in, bool x, bool rois,
               const GradBuilder::Attrs& a) {
  Grads d = b.own_n(op, std::move(in), rois ? 2 : 1, a);
  d.resize(2, kNone);
  if (!x && rois) b.graph().nodes.back().outputs[0] = d[0] = kNone;
  return d;
}

Grads grad(GradBuilder& b) {
  Grads g(size_t(b.inputs()), kNone);
  if (!b.wants(0) && !b.wants(1)) return g;
  Grads d = roi_grad(b, b.node().op + "Grad", {b.dy(), b.x(0), b.x(1), b.has(2) ? b.x(2) : kNone},
                     b.wants(0), b.wants(1) && is_align(b.node()), grad_attrs(b));
  g[0] = d[0], g[1] = d[1];
  return g;
}

// <a, dx> = <dy, NAMEAt(a, x, rois)>
Grads grad_of_grad(GradBuilder& b) {
  if (b.has_dy(1)) return roi_grad_of_grad_form(b);
  const GradBuilder::Attrs& attrs = b.node().attrs;
  std::string name = b.node().op.substr(0, b.node().op.size() - 4);
  ValueId a = b.dy(0), index = b.has(3) ? b.x(3) : kNone;
  Grads g(size_t(b.inputs()), kNone);
  if (b.wants(0)) g[0] = b.own(name + "At", {a, b.x(1), b.x(2), index}, attrs);
  if (b.wants(2) && name == "RoiAlign")
    g[2] = roi_grad(b, name + "Grad", {b.x(0), b.x(1), b.x(2), index, a}, false, true, attrs)[1];
  return g;
}

Grads grad_at(GradBuilder& b) {
  const GradBuilder::Attrs& attrs = b.node().attrs;
  std::string op = b.node().op.substr(0, b.node().op.size() - 2) + "Grad";
  ValueId index = b.has(3) ? b.x(3) : kNone;
  bool regions = b.wants(2) && is_align(b.node());
  Grads g(size_t(b.inputs()), kNone);
  if (!b.wants(0) && !regions) return g;
  Grads d = roi_grad(b, op, {b.dy(), b.x(1), b.x(2), index, b.x(0)}, b.wants(0), regions, attrs);
  g[0] = d[0], g[2] = d[1];
  return g;
}

}  // namespace

void register_roi(OpTable& t) {
  std::string own(kOwnDomain);
  std::vector<Impl> forward = {{"ref", nullptr, float_or_double<Forward>}};
  for (const char* name : {"RoiAlign", "MaxRoiPool"}) {
    t.add({.name = name, .shape = forward_shape, .impls = forward, .grad = grad});
    t.add({.name = std::string(name) + "At",
           .domain = own,
           .shape = forward_shape,
           .impls = forward,
           .grad = grad_at});
    bool align = std::string_view(name) == "RoiAlign";
    t.add({.name = std::string(name) + "Grad",
           .domain = own,
           .shape = grad_shape,
           .impls = {{"ref", nullptr, float_or_double<Backward>}},
           .grad = grad_of_grad,
           .lower = align ? roi_grad_form : nullptr});
  }
}

}  // namespace onnxtrain::ops
