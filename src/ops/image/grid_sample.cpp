// GridSample in any number of spatial dimensions up to 4, and GridSampleGrad(dy, x, grid) -> dx,
// dgrid.
#include <array>
#include <cmath>

#include "op/needs_shape.hpp"
#include "ops/common/widened_kernel.hpp"
#include "ops/image/grid_sample_lower.hpp"

namespace onnxtrain::ops {

namespace {

using Mode = GridMode;
using Padding = GridPadding;
constexpr int kMaxDims = 4, kMaxTaps = 256;

struct Sampler : GridSettings {
  int dims = 0, taps = 1;  // taps per dimension
  int64_t batch = 0, channels = 0, plane = 1, positions = 1;
  std::array<int64_t, kMaxDims> size{}, stride{};
};

Sampler sampler_of(const Node& n, const Shape& x, const Shape& grid) {
  Sampler s;
  std::string mode = n.s("mode", "linear"), padding = n.s("padding_mode", "zeros");
  if (mode == "nearest")
    s.mode = Mode::kNearest, s.taps = 1;
  else if (mode == "linear" || mode == "bilinear")
    s.mode = Mode::kLinear, s.taps = 2;
  else if (mode == "cubic" || mode == "bicubic")
    s.mode = Mode::kCubic, s.taps = 4;
  else
    model_error("OT1165", cat("mode of ", n.label(), " is '", mode, "'"));
  if (padding == "zeros")
    s.padding = Padding::kZeros;
  else if (padding == "border")
    s.padding = Padding::kBorder;
  else if (padding == "reflection")
    s.padding = Padding::kReflection;
  else
    model_error("OT1165", cat("padding_mode of ", n.label(), " is '", padding, "'"));
  s.align = n.i("align_corners", 0) != 0;
  s.dims = int(x.size()) - 2;
  if (s.dims < 1 || s.dims > kMaxDims || grid.size() != x.size() || grid[0] != x[0] ||
      grid.back() != s.dims)
    model_error("OT1165", cat("a grid of shape ", to_string(grid),
                              " does not fit an input of shape ", to_string(x)));
  s.batch = x[0], s.channels = x[1];
  for (int d = s.dims; d-- > 0;) {
    s.size[size_t(d)] = x[size_t(d) + 2];
    s.stride[size_t(d)] = s.plane;
    s.plane *= x[size_t(d) + 2];
  }
  for (size_t d = 1; d + 1 < grid.size(); ++d) s.positions *= grid[d];
  if (s.plane == 0 && s.batch * s.channels * s.positions > 0)
    model_error("OT1165", "GridSample of an empty image");
  return s;
}

// A coordinate and its derivative after reflection at low and high.
template <class T>
void reflect(T& x, T& slope, T low, T high) {
  T range = high - low;
  if (x >= low && x <= high) return;
  if (!(range > 0)) {
    x = low, slope = 0;
    return;
  }
  bool below = x < low;
  T d = below ? low - x : x - high, n = std::floor(d / range), r = d - n * range;
  bool even = std::fmod(n, T(2)) == 0;
  // going out by r beyond one border comes back by r from it
  bool from_low = below == even;
  x = from_low ? low + r : high - r;
  slope *= even ? T(-1) : T(1);
}

// Taps of one dimension.
template <class T>
struct Line {
  std::array<int64_t, 4> index{};  // -1: contributes nothing
  std::array<T, 4> weight{}, slope{};
};

template <class T>
Line<T> line_of(const Sampler& s, int d, T coordinate) {
  T size = T(s.size[size_t(d)]), low = s.align ? T(0) : T(-0.5),
    high = s.align ? size - 1 : size - T(0.5);
  T slope = s.align ? (size - 1) / 2 : size / 2;
  T x = s.align ? (coordinate + 1) / 2 * (size - 1) : ((coordinate + 1) * size - 1) / 2;
  // not a number, or so far away that an index would overflow: nothing is there
  if (!(std::fabs(x) < T(1e9))) x = s.padding == Padding::kBorder && x > 0 ? T(1e9) : T(-1e9);
  if (s.mode == Mode::kNearest) x = std::nearbyint(x), slope = 0;
  if (x < low || x > high) {
    // cubic taps are brought inside one by one, as PyTorch and onnxruntime do
    if (s.padding == Padding::kBorder && s.mode != Mode::kCubic)
      x = x < 0 ? T(0) : size - 1, slope = 0;
    else if (s.padding == Padding::kReflection)
      reflect(x, slope, low, high);
  }
  T base = std::floor(x), t = x - base;
  Line<T> line;
  int64_t first = int64_t(base);
  if (s.mode == Mode::kNearest) {
    first = int64_t(x);
    line.weight[0] = 1;
  } else if (s.mode == Mode::kLinear) {
    line.weight[0] = 1 - t, line.weight[1] = t;
    line.slope[0] = -slope, line.slope[1] = slope;
  } else {
    first -= 1;
    T a = T(-0.75);
    auto near = [&](T v) { return ((a + 2) * v - (a + 3)) * v * v + 1; };
    auto far = [&](T v) { return ((a * v - 5 * a) * v + 8 * a) * v - 4 * a; };
    auto near_d = [&](T v) { return (3 * (a + 2) * v - 2 * (a + 3)) * v; };
    auto far_d = [&](T v) { return (3 * a * v - 10 * a) * v + 8 * a; };
    line.weight = {far(t + 1), near(t), near(1 - t), far(2 - t)};
    line.slope = {far_d(t + 1) * slope, near_d(t) * slope, -near_d(1 - t) * slope,
                  -far_d(2 - t) * slope};
  }
  for (int k = 0; k < s.taps; ++k) {
    int64_t i = first + k, n = s.size[size_t(d)];
    if (i < 0 || i >= n) {
      if (s.padding == Padding::kZeros) {
        i = -1;
      } else if (s.padding == Padding::kBorder) {
        i = i < 0 ? 0 : n - 1;
      } else {
        T at = T(i), ignored = 1;
        reflect(at, ignored, low, high);
        i = std::min(std::max<int64_t>(int64_t(at), 0), n - 1);
      }
    }
    line.index[size_t(k)] = i;
  }
  return line;
}

// All taps of one output position.
template <class T>
struct Stencil {
  int count = 0;
  std::array<int64_t, kMaxTaps> offset;
  std::array<T, kMaxTaps> weight;
  std::array<std::array<T, kMaxTaps>, kMaxDims> slope;  // by dimension, filled on request

  void fill(const Sampler& s, const T* grid, bool slopes) {
    std::array<Line<T>, kMaxDims> lines;
    // the grid names the last dimension first
    for (int d = 0; d < s.dims; ++d) lines[size_t(d)] = line_of(s, d, grid[s.dims - 1 - d]);
    count = 0;
    int total = 1;
    for (int d = 0; d < s.dims; ++d) total *= s.taps;
    for (int c = 0; c < total; ++c) {
      int rest = c;
      int64_t at = 0;
      T w = 1;
      std::array<int, kMaxDims> tap{};
      bool inside = true;
      for (int d = s.dims; d-- > 0; rest /= s.taps) {
        tap[size_t(d)] = rest % s.taps;
        const Line<T>& l = lines[size_t(d)];
        int64_t i = l.index[size_t(tap[size_t(d)])];
        inside &= i >= 0;
        at += i * s.stride[size_t(d)];
        w *= l.weight[size_t(tap[size_t(d)])];
      }
      if (!inside) continue;
      size_t k = size_t(count++);
      offset[k] = at, weight[k] = w;
      for (int d = 0; d < s.dims && slopes; ++d) {
        T v = 1;
        for (int e = 0; e < s.dims; ++e) {
          const Line<T>& l = lines[size_t(e)];
          v *= e == d ? l.slope[size_t(tap[size_t(e)])] : l.weight[size_t(tap[size_t(e)])];
        }
        slope[size_t(d)][k] = v;
      }
    }
  }
};

void shape(ShapeCtx& c) {
  sampler_of(c.node(), c.shape(0), c.shape(1));
  Shape out{c.shape(0)[0], c.shape(0)[1]};
  out.insert(out.end(), c.shape(1).begin() + 1, c.shape(1).end() - 1);
  c.set(0, c.dtype(0), out);
}

struct Forward {
  template <class T>
  static Kernel make(Prepare& p) {
    Sampler s = sampler_of(p.node(), p.in(0).shape, p.in(1).shape);
    return [s](const Run& r) {
      const T *x = r.in<T>(0), *grid = r.in<T>(1);
      T* y = r.out<T>(0);
      parallel_for(*r.pool, s.batch * s.positions, 256, [&](int64_t b, int64_t e) {
        Stencil<T> st;
        for (int64_t i = b; i < e; ++i) {
          int64_t n = i / s.positions, at = i % s.positions;
          st.fill(s, grid + i * s.dims, false);
          for (int64_t c = 0; c < s.channels; ++c) {
            const T* plane = x + (n * s.channels + c) * s.plane;
            T sum = 0;
            for (int k = 0; k < st.count; ++k)
              sum += st.weight[size_t(k)] * plane[st.offset[size_t(k)]];
            y[(n * s.channels + c) * s.positions + at] = sum;
          }
        }
      });
    };
  }
};

void grad_shape(ShapeCtx& c) {
  sampler_of(c.node(), c.shape(1), c.shape(2));
  Shape want{c.shape(1)[0], c.shape(1)[1]};
  want.insert(want.end(), c.shape(2).begin() + 1, c.shape(2).end() - 1);
  if (c.shape(0) != want)
    model_error("OT1165",
                cat("dy has shape ", to_string(c.shape(0)), ", expected ", to_string(want)));
  c.set(0, c.dtype(1), c.shape(1));
  c.set(1, c.dtype(2), c.shape(2));
}

constexpr int64_t kChannelsPerTask = 16;

template <class T>
void grad_x(const Sampler& s, const T* dy, const T* grid, T* dx, ThreadPool& pool) {
  int64_t parts = (s.channels + kChannelsPerTask - 1) / kChannelsPerTask;
  pool.run(s.batch * parts, [&](int64_t task) {
    int64_t n = task / parts, c0 = task % parts * kChannelsPerTask,
            c1 = std::min(s.channels, c0 + kChannelsPerTask);
    std::fill_n(dx + (n * s.channels + c0) * s.plane, (c1 - c0) * s.plane, T(0));
    Stencil<T> st;
    for (int64_t at = 0; at < s.positions; ++at) {
      st.fill(s, grid + (n * s.positions + at) * s.dims, false);
      for (int64_t c = c0; c < c1; ++c) {
        T g = dy[(n * s.channels + c) * s.positions + at],
          *plane = dx + (n * s.channels + c) * s.plane;
        for (int k = 0; k < st.count; ++k) plane[st.offset[size_t(k)]] += st.weight[size_t(k)] * g;
      }
    }
  });
}

template <class T>
void grad_grid(const Sampler& s, const T* dy, const T* x, const T* grid, T* dgrid,
               ThreadPool& pool) {
  parallel_for(pool, s.batch * s.positions, 256, [&](int64_t b, int64_t e) {
    Stencil<T> st;
    for (int64_t i = b; i < e; ++i) {
      int64_t n = i / s.positions, at = i % s.positions;
      st.fill(s, grid + i * s.dims, true);
      std::array<T, kMaxDims> sum{};
      for (int64_t c = 0; c < s.channels; ++c) {
        const T* plane = x + (n * s.channels + c) * s.plane;
        T g = dy[(n * s.channels + c) * s.positions + at];
        for (int k = 0; k < st.count; ++k)
          for (int d = 0; d < s.dims; ++d)
            sum[size_t(d)] += g * st.slope[size_t(d)][size_t(k)] * plane[st.offset[size_t(k)]];
      }
      for (int d = 0; d < s.dims; ++d) dgrid[i * s.dims + s.dims - 1 - d] = sum[size_t(d)];
    }
  });
}

struct Backward {
  template <class T>
  static Kernel make(Prepare& p) {
    Sampler s = sampler_of(p.node(), p.in(1).shape, p.in(2).shape);
    bool want_x = p.wants(0), want_grid = p.wants(1);
    return [=](const Run& r) {
      if (want_x) grad_x(s, r.in<T>(0), r.in<T>(2), r.out<T>(0), *r.pool);
      if (want_grid) grad_grid(s, r.in<T>(0), r.in<T>(1), r.in<T>(2), r.out<T>(1), *r.pool);
    };
  }
};

std::vector<ValueId> grad(GradBuilder& b) {
  std::vector<ValueId> g = b.own_n("GridSampleGrad", {b.dy(), b.x(0), b.x(1)}, 2, b.node().attrs);
  std::vector<ValueId>& out = b.graph().nodes.back().outputs;
  for (int i = 0; i < 2; ++i)
    if (!b.wants(i)) out[size_t(i)] = kNone, g[size_t(i)] = kNone;
  return g;
}

std::vector<ValueId> grad_lower(GradBuilder& b) {
  if (!b.shape_known(b.x(1)) || !b.shape_known(b.x(2)))
    needs_shape("OT1206", "the gradient of GridSample in standard operators needs known shapes");
  Sampler s = sampler_of(b.node(), b.shape(b.x(1)), b.shape(b.x(2)));
  return gradients_of(b, {b.x(1), b.x(2)}, b.x(0), [&](const std::vector<ValueId>& v) {
    return grid_sample_standard(b, s, v[0], v[1]);
  });
}

}  // namespace

void register_grid_sample(OpTable& t) {
  t.add({.name = "GridSample",
         .shape = shape,
         .impls = {{"ref", nullptr, float_or_double<Forward>}},
         .grad = grad});
  t.add({.name = "GridSampleGrad",
         .domain = std::string(kOwnDomain),
         .shape = grad_shape,
         .impls = {{"ref", nullptr, float_or_double<Backward>}},
         .lower = grad_lower});
}

}  // namespace onnxtrain::ops
