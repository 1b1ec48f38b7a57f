// DeformConv in two dimensions, and DeformConvGrad(dy, x, w, offset, mask) -> dx, dw, doffset,
// dmask.
#include <cmath>

#include "op/needs_shape.hpp"
#include "ops/common/widened_kernel.hpp"
#include "ops/image/grid_sample_lower.hpp"
#include "ops/nn/conv_shape.hpp"
#include "ops/nn/window_shape.hpp"

namespace onnxtrain::ops {

namespace {

struct Deform {
  kernels::ConvShape s;
  int64_t offset_groups = 1;
  bool masked = false;
  int64_t taps() const { return s.window.taps(); }
  int64_t places() const { return s.window.out_size(); }
  int64_t channels_per_offset() const { return s.in_channels / offset_groups; }
};

Deform deform_of(const Node& n, const Shape& x, const Shape& w, const Shape& offset,
                 const Shape* mask) {
  if (x.size() != 4)
    model_error("OT1145", cat("DeformConv works on images [N,C,H,W], got ", to_string(x)));
  Deform d;
  d.s = conv_shape_of(n, x, w);
  d.offset_groups = n.i("offset_group", 1);
  d.masked = mask != nullptr;
  const auto& win = d.s.window;
  if (d.offset_groups < 1 || x[1] % d.offset_groups != 0 ||
      offset != Shape{x[0], num_elements({d.offset_groups, win.taps(), 2}), win.out[0], win.out[1]})
    model_error("OT1145", cat("offsets of shape ", to_string(offset), " do not fit offset_group ",
                              d.offset_groups));
  if (mask && *mask != Shape{x[0], d.offset_groups * win.taps(), win.out[0], win.out[1]})
    model_error("OT1145", cat("a mask of shape ", to_string(*mask), " does not fit"));
  return d;
}

// The sampled point of one tap: four pixels, weights and their derivatives by y and x.
template <class T>
struct Point {
  int64_t at[4];
  T weight[4], dy[4], dx[4];
  bool inside = false;
  Point(int64_t h, int64_t w, T y, T x) {
    if (!(y > -1 && y < T(h) && x > -1 && x < T(w))) return;
    inside = true;
    T y0 = std::floor(y), x0 = std::floor(x), ly = y - y0, lx = x - x0;
    for (int k = 0; k < 4; ++k) {
      int64_t r = int64_t(y0) + k / 2, c = int64_t(x0) + k % 2;
      T wy = k / 2 ? ly : 1 - ly, wx = k % 2 ? lx : 1 - lx;
      bool in = r >= 0 && r < h && c >= 0 && c < w;
      at[k] = in ? r * w + c : 0;
      weight[k] = in ? wy * wx : T(0);
      dy[k] = in ? (k / 2 ? wx : -wx) : T(0);
      dx[k] = in ? (k % 2 ? wy : -wy) : T(0);
    }
  }
};

template <class T>
Point<T> point_of(const Deform& d, const T* offset, int64_t n, int64_t og, int64_t tap,
                  int64_t place) {
  const auto& w = d.s.window;
  int64_t i = place / w.out[1], j = place % w.out[1], kh = tap / w.kernel[1],
          kw = tap % w.kernel[1];
  const T* o = offset + ((n * d.offset_groups + og) * d.taps() + tap) * 2 * d.places() + place;
  T y = T(i * w.strides[0] - w.pads_begin[0] + kh * w.dilations[0]) + o[0];
  T x = T(j * w.strides[1] - w.pads_begin[1] + kw * w.dilations[1]) + o[d.places()];
  return Point<T>(w.in[0], w.in[1], y, x);
}

template <class T>
T mask_of(const Deform& d, const T* mask, int64_t n, int64_t og, int64_t tap, int64_t place) {
  return mask ? mask[((n * d.offset_groups + og) * d.taps() + tap) * d.places() + place] : T(1);
}

// columns[c][tap][place] of one image
template <class T>
void columns(const Deform& d, int64_t n, const T* x, const T* offset, const T* mask, T* to,
             ThreadPool& pool) {
  int64_t plane = d.s.window.in_size(), per = d.channels_per_offset();
  pool.run(d.offset_groups * d.taps(), [&](int64_t task) {
    int64_t og = task / d.taps(), tap = task % d.taps();
    for (int64_t place = 0; place < d.places(); ++place) {
      Point<T> p = point_of(d, offset, n, og, tap, place);
      T m = mask_of(d, mask, n, og, tap, place);
      for (int64_t c = og * per; c < (og + 1) * per; ++c) {
        const T* image = x + (n * d.s.in_channels + c) * plane;
        T v = 0;
        for (int k = 0; k < 4 && p.inside; ++k) v += p.weight[k] * image[p.at[k]];
        to[(c * d.taps() + tap) * d.places() + place] = v * m;
      }
    }
  });
}

struct Forward {
  template <class T>
  static Kernel make(Prepare& p) {
    Deform d = deform_of(p.node(), p.in(0).shape, p.in(1).shape, p.in(2).shape,
                         p.has(4) ? &p.in(4).shape : nullptr);
    int64_t icg = d.s.in_per_group(), ocg = d.s.out_per_group(), depth = icg * d.taps(),
            places = d.places();
    p.workspace = size_t(d.s.in_channels * d.taps() * places) * sizeof(T);
    bool bias = p.has(3), mask = p.has(4);
    return [=](const Run& r) {
      T *y = r.out<T>(0), *cols = static_cast<T*>(r.workspace);
      for (int64_t n = 0; n < d.s.batch; ++n) {
        columns(d, n, r.in<T>(0), r.in<T>(2), mask ? r.in<T>(4) : nullptr, cols, *r.pool);
        r.pool->run(d.s.out_channels, [&](int64_t m) {
          T* row = y + (n * d.s.out_channels + m) * places;
          std::fill_n(row, places, bias ? r.in<T>(3)[m] : T(0));
          const T *w = r.in<T>(1) + m * depth, *from = cols + m / ocg * depth * places;
          for (int64_t k = 0; k < depth; ++k)
            for (int64_t j = 0; j < places; ++j) row[j] += w[k] * from[k * places + j];
        });
      }
    };
  }
};

void shape(ShapeCtx& c) {
  Deform d =
      deform_of(c.node(), c.shape(0), c.shape(1), c.shape(2), c.has(4) ? &c.shape(4) : nullptr);
  if (c.has(3) && c.shape(3) != Shape{d.s.out_channels})
    model_error("OT1145", cat("the bias has shape ", to_string(c.shape(3))));
  c.set(0, c.dtype(0), with_channels(d.s.batch, d.s.out_channels, d.s.window.out));
}

// ---------------------------------------------------------------- gradient
void grad_shape(ShapeCtx& c) {
  Deform d =
      deform_of(c.node(), c.shape(1), c.shape(2), c.shape(3), c.has(4) ? &c.shape(4) : nullptr);
  if (c.shape(0) != with_channels(d.s.batch, d.s.out_channels, d.s.window.out))
    model_error("OT1145", cat("dy has shape ", to_string(c.shape(0))));
  for (int k = 0; k < 3; ++k) c.set(k, c.dtype(k + 1), c.shape(k + 1));
  if (c.has(4)) c.set(3, c.dtype(4), c.shape(4));
}

template <class T>
struct GradRun {
  const Deform& d;
  const T *dy, *x, *w, *offset, *mask;
  T *dx, *dw, *doffset, *dmask, *cols, *dcols;
  ThreadPool& pool;

  // dw += dy * columns^T, one task per output channel; dcols = w^T * dy, one per column row
  void products(int64_t n) {
    int64_t depth = d.s.in_per_group() * d.taps(), places = d.places(), ocg = d.s.out_per_group();
    const T* g = dy + n * d.s.out_channels * places;
    if (dw) {
      pool.run(d.s.out_channels, [&](int64_t m) {
        for (int64_t k = 0; k < depth; ++k) {
          const T* row = cols + (m / ocg * depth + k) * places;
          T sum = 0;
          for (int64_t j = 0; j < places; ++j) sum += g[m * places + j] * row[j];
          dw[m * depth + k] = (n == 0 ? T(0) : dw[m * depth + k]) + sum;
        }
      });
    }
    pool.run(d.s.groups * depth, [&](int64_t row) {
      int64_t group = row / depth, k = row % depth;
      T* to = dcols + row * places;
      std::fill_n(to, places, T(0));
      for (int64_t m = group * ocg; m < (group + 1) * ocg; ++m)
        for (int64_t j = 0; j < places; ++j) to[j] += w[m * depth + k] * g[m * places + j];
    });
  }

  // dcols into the image: taps of a channel overlap, so a task is a channel
  void image(int64_t n) {
    int64_t plane = d.s.window.in_size(), per = d.channels_per_offset();
    pool.run(d.s.in_channels, [&](int64_t c) {
      T* to = dx + (n * d.s.in_channels + c) * plane;
      std::fill_n(to, plane, T(0));
      for (int64_t tap = 0; tap < d.taps(); ++tap)
        for (int64_t place = 0; place < d.places(); ++place) {
          Point<T> p = point_of(d, offset, n, c / per, tap, place);
          if (!p.inside) continue;
          T g = dcols[(c * d.taps() + tap) * d.places() + place] *
                mask_of(d, mask, n, c / per, tap, place);
          for (int k = 0; k < 4; ++k) to[p.at[k]] += p.weight[k] * g;
        }
    });
  }

  void places_back(int64_t n) {
    int64_t plane = d.s.window.in_size(), per = d.channels_per_offset(), places = d.places();
    pool.run(d.offset_groups * d.taps(), [&](int64_t task) {
      int64_t og = task / d.taps(), tap = task % d.taps();
      for (int64_t place = 0; place < places; ++place) {
        Point<T> p = point_of(d, offset, n, og, tap, place);
        T m = mask_of(d, mask, n, og, tap, place), by_y = 0, by_x = 0, by_mask = 0;
        for (int64_t c = og * per; c < (og + 1) * per && p.inside; ++c) {
          const T* img = x + (n * d.s.in_channels + c) * plane;
          T g = dcols[(c * d.taps() + tap) * places + place];
          for (int k = 0; k < 4; ++k) {
            by_y += g * m * p.dy[k] * img[p.at[k]];
            by_x += g * m * p.dx[k] * img[p.at[k]];
            by_mask += g * p.weight[k] * img[p.at[k]];
          }
        }
        int64_t row = (n * d.offset_groups + og) * d.taps() + tap;
        if (doffset)
          doffset[row * 2 * places + place] = by_y, doffset[(row * 2 + 1) * places + place] = by_x;
        if (dmask) dmask[row * places + place] = by_mask;
      }
    });
  }
};

struct Backward {
  template <class T>
  static Kernel make(Prepare& p) {
    Deform d = deform_of(p.node(), p.in(1).shape, p.in(2).shape, p.in(3).shape,
                         p.has(4) ? &p.in(4).shape : nullptr);
    int64_t size = d.s.in_channels * d.taps() * d.places();
    p.workspace = 2 * size_t(size) * sizeof(T);
    bool mask = p.has(4);
    int64_t weights = p.in(2).size();
    int outputs = p.outputs();
    return [=](const Run& r) {
      T* space = static_cast<T*>(r.workspace);
      auto out = [&](int i) { return i < outputs ? r.out<T>(i) : nullptr; };
      GradRun<T> g{
          d,      r.in<T>(0), r.in<T>(1), r.in<T>(2), r.in<T>(3), mask ? r.in<T>(4) : nullptr,
          out(0), out(1),     out(2),     out(3),     space,      space + size,
          *r.pool};
      if (g.dw && d.s.batch == 0) std::fill_n(g.dw, weights, T(0));
      for (int64_t n = 0; n < d.s.batch; ++n) {
        columns(d, n, g.x, g.offset, g.mask, g.cols, *r.pool);
        g.products(n);
        if (g.dx) g.image(n);
        if (g.doffset || g.dmask) g.places_back(n);
      }
    };
  }
};

std::vector<ValueId> grad(GradBuilder& b) {
  std::vector<ValueId> g(size_t(b.inputs()), kNone);
  bool mask = b.has(4);
  std::vector<ValueId> d =
      b.own_n("DeformConvGrad", {b.dy(), b.x(0), b.x(1), b.x(2), mask ? b.x(4) : kNone},
              mask ? 4 : 3, b.node().attrs);
  for (int k = 0; k < 3; ++k) g[size_t(k)] = d[size_t(k)];
  if (mask) g[4] = d[3];
  if (b.has(3) && b.wants(3)) g[3] = bias_grad(b, b.dy());
  return g;
}

// ---------------------------------------------------------------- in standard operators
// [N * offset groups, taps, places...] coordinates of one dimension, as GridSample counts them.
ValueId coordinates(GradBuilder& b, const Deform& d, ValueId offset, int64_t dim) {
  const auto& w = d.s.window;
  Tensor at(DType::kDouble, {1, d.taps(), w.out[0], w.out[1]});
  for (int64_t tap = 0, k = 0; tap < d.taps(); ++tap)
    for (int64_t i = 0; i < w.out[0]; ++i)
      for (int64_t j = 0; j < w.out[1]; ++j, ++k) {
        int64_t inside = dim == 0 ? tap / w.kernel[1] : tap % w.kernel[1], place = dim == 0 ? i : j;
        size_t q = size_t(dim);
        at.as<double>()[k] =
            double(place * w.strides[q] - w.pads_begin[q] + inside * w.dilations[q]);
      }
  ValueId moved = b.call("Gather", {offset, b.constant_int(dim)}, {{"axis", int64_t(2)}});
  ValueId x = b.add(moved, b.cast_like(b.tensor(at), moved));
  double size = double(w.in[size_t(dim)]);
  return b.add(b.mul(x, b.scalar(2 / size, x)), b.scalar(1 / size - 1, x));
}

// Columns by GridSample, then one GEMM per group.
ValueId forward_standard(GradBuilder& b, const Deform& d, const std::vector<ValueId>& v) {
  const auto& w = d.s.window;
  int64_t og = d.offset_groups, n = d.s.batch, per = d.channels_per_offset(), taps = d.taps();
  auto shaped = [&](ValueId x, const std::vector<int64_t>& to) {
    return b.call("Reshape", {x, b.constant_ints(to)});
  };
  ValueId x = shaped(v[0], {n * og, per, w.in[0], w.in[1]});
  ValueId offset = shaped(v[2], {n * og, taps, 2, w.out[0], w.out[1]});
  ValueId grid = b.call("Concat",
                        {b.unsqueeze(coordinates(b, d, offset, 1), {4}),
                         b.unsqueeze(coordinates(b, d, offset, 0), {4})},
                        {{"axis", int64_t(4)}});
  grid = shaped(grid, {n * og, taps * w.out[0], w.out[1], 2});
  ValueId columns = b.call("GridSample", {x, grid},
                           {{"mode", std::string(b.opset() >= 20 ? "linear" : "bilinear")},
                            {"padding_mode", std::string("zeros")},
                            {"align_corners", int64_t(0)}});
  columns = shaped(columns, {n, og, per, taps, d.places()});
  if (v[3] != kNone) columns = b.mul(columns, shaped(v[3], {n, og, 1, taps, d.places()}));
  int64_t groups = d.s.groups, depth = d.s.in_per_group() * taps;
  columns = shaped(columns, {n, groups, depth, d.places()});
  ValueId weights = shaped(v[1], {groups, d.s.out_per_group(), depth});
  return shaped(b.call("MatMul", {weights, columns}), {n, d.s.out_channels, w.out[0], w.out[1]});
}

std::vector<ValueId> grad_lower(GradBuilder& b) {
  for (int i = 1; i < 4; ++i)
    if (!b.shape_known(b.x(i)))
      needs_shape("OT1206", "the gradient of DeformConv in standard operators needs known shapes");
  bool mask = b.has(4);
  Shape mask_shape = mask ? b.shape(b.x(4)) : Shape{};
  Deform d = deform_of(b.node(), b.shape(b.x(1)), b.shape(b.x(2)), b.shape(b.x(3)),
                       mask ? &mask_shape : nullptr);
  return gradients_of(b, {b.x(1), b.x(2), b.x(3), mask ? b.x(4) : kNone}, b.x(0),
                      [&](const std::vector<ValueId>& v) { return forward_standard(b, d, v); });
}

}  // namespace

void register_deform_conv(OpTable& t) {
  t.add({.name = "DeformConv",
         .shape = shape,
         .impls = {{"ref", nullptr, float_or_double<Forward>}},
         .grad = grad});
  t.add({.name = "DeformConvGrad",
         .domain = std::string(kOwnDomain),
         .shape = grad_shape,
         .impls = {{"ref", nullptr, float_or_double<Backward>}},
         .lower = grad_lower});
}

}  // namespace onnxtrain::ops
