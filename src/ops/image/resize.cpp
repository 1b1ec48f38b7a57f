// Resize and Upsample in all versions, and ResizeGrad(dy, roi, scales, sizes, shape of x).
#include "op/grad_builder.hpp"
#include "ops/common/widened_kernel.hpp"
#include "ops/image/resize_lower.hpp"
#include "ops/image/resize_operands.hpp"

namespace onnxtrain::ops {

namespace {

// The region matters only when the node crops_input.
std::vector<int> shape_values(const Node& n) {
  const ResizeOperands o = resize_operands(n);
  std::vector<int> list;
  for (int i :
       {o.scales, o.sizes, crops_input(n) ? o.roi : -1, is_resize_grad(n) ? kResizedShape : -1})
    if (i >= 0) list.push_back(i);
  return list;
}

void resize_shape(ShapeCtx& c) {
  ResizeSpec s = resize_spec_of(
      c, c.shape(0), [&](int i) { return &c.value(i); }, false);
  c.set(0, c.dtype(0), s.out);
}

// [outer, axis, inner] before and after one axis is resized.
template <class T>
struct Pass {
  int64_t outer, in, out, inner, taps;
  CountedVector<int64_t> index;
  CountedVector<T> weight;
  int64_t in_size() const { return outer * in * inner; }
  int64_t out_size() const { return outer * out * inner; }
};

// Takes the tables of `s` over: one axis can have millions of outputs.
template <class T>
std::vector<Pass<T>> passes_of(ResizeSpec& s, Shape shape) {
  std::vector<Pass<T>> passes;
  for (ResizeAxis& a : s.axes) {
    Pass<T> p;
    p.outer = product(shape, 0, size_t(a.axis));
    p.inner = product(shape, size_t(a.axis) + 1, shape.size());
    p.in = a.in, p.out = a.out, p.taps = a.taps, p.index = std::move(a.index);
    p.weight.assign(a.weight.begin(), a.weight.end());
    a.weight = {};
    shape[size_t(a.axis)] = a.out;
    passes.push_back(std::move(p));
  }
  return passes;
}

template <class T>
void forward(const Pass<T>& p, const T* x, T* y, ThreadPool& pool) {
  int64_t grain = std::max<int64_t>(1, 16 * 1024 / std::max<int64_t>(1, p.out * p.inner * p.taps));
  parallel_for(pool, p.outer, grain, [&](int64_t b, int64_t e) {
    for (int64_t o = b; o < e; ++o) {
      const T* xo = x + o * p.in * p.inner;
      T* yo = y + o * p.out * p.inner;
      for (int64_t i = 0; i < p.out; ++i) {
        const int64_t* at = p.index.data() + i * p.taps;
        const T* w = p.weight.data() + i * p.taps;
        T* row = yo + i * p.inner;
        for (int64_t k = 0; k < p.taps; ++k) {
          const T* from = xo + at[k] * p.inner;
          T v = w[k];
          if (k == 0) {
            for (int64_t j = 0; j < p.inner; ++j) row[j] = v * from[j];
          } else {
            for (int64_t j = 0; j < p.inner; ++j) row[j] += v * from[j];
          }
        }
      }
    }
  });
}

template <class T>
void backward(const Pass<T>& p, const T* dy, T* dx, ThreadPool& pool) {
  int64_t grain = std::max<int64_t>(1, 16 * 1024 / std::max<int64_t>(1, p.out * p.inner * p.taps));
  parallel_for(pool, p.outer, grain, [&](int64_t b, int64_t e) {
    for (int64_t o = b; o < e; ++o) {
      T* xo = dx + o * p.in * p.inner;
      const T* yo = dy + o * p.out * p.inner;
      std::fill_n(xo, p.in * p.inner, T(0));
      for (int64_t i = 0; i < p.out; ++i)
        for (int64_t k = 0; k < p.taps; ++k) {
          T v = p.weight[size_t(i * p.taps + k)];
          T* to = xo + p.index[size_t(i * p.taps + k)] * p.inner;
          const T* row = yo + i * p.inner;
          for (int64_t j = 0; j < p.inner; ++j) to[j] += v * row[j];
        }
    }
  });
}

// Calls f(offset) for every output element that lies outside the cropped input.
template <class F>
void for_outside(const ResizeSpec& s, F f) {
  for (const ResizeAxis& a : s.axes) {
    if (!a.any_outside) continue;
    int64_t outer = product(s.out, 0, size_t(a.axis)),
            inner = product(s.out, size_t(a.axis) + 1, s.out.size());
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < a.out; ++i)
        if (a.outside[size_t(i)])
          for (int64_t j = 0; j < inner; ++j) f((o * a.out + i) * inner + j);
  }
}

template <class T>
size_t scratch(const std::vector<Pass<T>>& passes) {
  int64_t most = 0;
  for (const Pass<T>& p : passes) most = std::max({most, p.in_size(), p.out_size()});
  return (size_t(most) * sizeof(T) + 63) / 64 * 64;
}

ResizeSpec prepared(const Prepare& p, const Shape& in) {
  return resize_spec_of(
      p, in, [&](int i) { return p.constant(i); }, true);
}

struct Interpolate {
  template <class T>
  static Kernel make(Prepare& p) {
    ResizeSpec s = prepared(p, p.in(0).shape);
    std::vector<Pass<T>> passes = passes_of<T>(s, p.in(0).shape);
    size_t bytes = passes.size() > 1 ? scratch(passes) : 0;
    p.workspace = 2 * bytes;
    int64_t n = p.out(0).size();
    return [=, s = std::move(s), passes = std::move(passes)](const Run& r) {
      const T* from = r.in<T>(0);
      T *y = r.out<T>(0),
        *space[2] = {static_cast<T*>(r.workspace),
                     reinterpret_cast<T*>(static_cast<char*>(r.workspace) + bytes)};
      if (n == 0) return;
      if (passes.empty()) std::copy_n(from, n, y);
      for (size_t k = 0; k < passes.size(); ++k) {
        T* to = k + 1 == passes.size() ? y : space[k % 2];
        forward(passes[k], from, to, *r.pool);
        from = to;
      }
      for_outside(s, [&](int64_t at) { y[at] = T(s.extrapolation); });
    };
  }
};

// Nearest moves elements of any type, by their size.
template <class T>
Kernel make_moved(Prepare& p) {
  ResizeSpec s = prepared(p, p.in(0).shape);
  Shape in_strides = strides_of(p.in(0).shape), out = s.out;
  std::vector<CountedVector<int64_t>> offset;  // [dimension][output index] -> input offset
  for (size_t d = 0; d < out.size(); ++d) {
    CountedVector<int64_t> o(size_t(out[d]), 0);
    for (int64_t i = 0; i < out[d]; ++i) o[size_t(i)] = i * in_strides[d];
    for (const ResizeAxis& a : s.axes)
      if (a.axis == int64_t(d))
        for (int64_t i = 0; i < out[d]; ++i) o[size_t(i)] = a.index[size_t(i)] * in_strides[d];
    offset.push_back(std::move(o));
  }
  int64_t inner = out.empty() ? 1 : out.back(),
          rows = num_elements(out) == 0 ? 0 : num_elements(out) / inner;
  if (out.empty()) offset.push_back({0});
  return [=](const Run& r) {
    const T* x = r.in<T>(0);
    T* y = r.out<T>(0);
    parallel_for(*r.pool, rows, std::max<int64_t>(1, 16 * 1024 / std::max<int64_t>(1, inner)),
                 [&](int64_t b, int64_t e) {
                   for (int64_t row = b; row < e; ++row) {
                     int64_t rest = row, base = 0;
                     for (size_t d = offset.size() - 1; d-- > 0; rest /= out[d])
                       base += offset[d][size_t(rest % out[d])];
                     const int64_t* last = offset.back().data();
                     for (int64_t j = 0; j < inner; ++j) y[row * inner + j] = x[base + last[j]];
                   }
                 });
  };
}

std::string moved_refuses(const Prepare& p) {
  if (p.node().s("mode", "nearest") != "nearest") return "mode is not nearest";
  return crops_input(p.node()) ? "may extrapolate" : "";
}
Kernel make_nearest(Prepare& p) {
  if (p.in(0).dtype == DType::kString) return make_moved<std::string>(p);
  switch (dtype_size(p.in(0).dtype)) {
    case 1:
      return make_moved<uint8_t>(p);
    case 2:
      return make_moved<uint16_t>(p);
    case 4:
      return make_moved<uint32_t>(p);
    case 8:
      return make_moved<uint64_t>(p);
    default:
      return make_moved<std::complex<double>>(p);
  }
}

// ---------------------------------------------------------------- gradient

void grad_shape(ShapeCtx& c) {
  Shape x = c.ints(kResizedShape);
  num_elements(x);
  ResizeSpec s = resize_spec_of(
      c, x, [&](int i) { return &c.value(i); }, false);
  if (s.out != c.shape(0))
    model_error("OT1160",
                cat("dy has shape ", to_string(c.shape(0)), ", expected ", to_string(s.out)));
  c.set(0, c.dtype(0), x);
}

struct Gradient {
  template <class T>
  static Kernel make(Prepare& p) {
    ResizeSpec s = prepared(p, p.out(0).shape);
    std::vector<Pass<T>> passes = passes_of<T>(s, p.out(0).shape);
    bool masked = false;
    for (const ResizeAxis& a : s.axes) masked |= a.any_outside;
    int64_t n = p.in(0).size(), m = p.out(0).size();
    size_t bytes = std::max(scratch(passes), size_t(0)),
           mask_bytes = masked ? (size_t(n) * sizeof(T) + 63) / 64 * 64 : 0;
    p.workspace = 2 * bytes + mask_bytes;
    return [=, s = std::move(s), passes = std::move(passes)](const Run& r) {
      const T* from = r.in<T>(0);
      char* base = static_cast<char*>(r.workspace);
      T *dx = r.out<T>(0),
        *space[2] = {reinterpret_cast<T*>(base), reinterpret_cast<T*>(base + bytes)};
      if (masked) {
        T* copy = reinterpret_cast<T*>(base + 2 * bytes);
        std::copy_n(from, n, copy);
        for_outside(s, [&](int64_t at) { copy[at] = 0; });
        from = copy;
      }
      if (n == 0) {
        std::fill_n(dx, m, T(0));
        return;
      }
      if (passes.empty()) std::copy_n(from, n, dx);
      for (size_t k = passes.size(); k-- > 0;) {
        T* to = k == 0 ? dx : space[k % 2];
        backward(passes[k], from, to, *r.pool);
        from = to;
      }
    };
  }
};

GradBuilder::Attrs grad_attrs(const Node& n) {
  GradBuilder::Attrs a = n.attrs;
  if (is_legacy_resize(n)) a["legacy"] = int64_t(1);
  return a;
}

std::vector<ValueId> resize_grad(GradBuilder& b) {
  ResizeOperands o = resize_operands(b.node());
  auto in = [&](int i) { return i >= 0 && b.has(i) ? b.x(i) : kNone; };
  std::vector<ValueId> g(size_t(b.inputs()), kNone);
  g[0] = b.own("ResizeGrad", {b.dy(), in(o.roi), in(o.scales), in(o.sizes), b.shape_of(b.x(0))},
               grad_attrs(b.node()));
  return g;
}

// Linear in dy: the gradient of the gradient resizes.
std::vector<ValueId> resize_grad_grad(GradBuilder& b) {
  std::vector<ValueId> g(size_t(b.inputs()), kNone);
  GradBuilder::Attrs a = b.node().attrs;
  a["extrapolation_value"] = 0.0f;
  if (is_legacy_resize(b.node())) {
    a["coordinate_transformation_mode"] = std::string("asymmetric");
    a["nearest_mode"] = std::string("floor");
    a.erase("legacy");
  }
  auto in = [&](int i) { return b.has(i) ? b.x(i) : kNone; };
  ValueId scales = in(2);
  if (scales == kNone && in(3) == kNone)
    scales = b.tensor(resize_attribute_scales(b.node(), b.need_rank(b.dy())));
  for (const char* key : {"scales", "height_scale", "width_scale"}) a.erase(key);
  g[0] = b.call("Resize", {b.dy(), in(1), scales, in(3)}, a);
  return g;
}

}  // namespace

void register_resize(OpTable& t) {
  std::vector<Impl> impls = {{"move", moved_refuses, make_nearest},
                             {"axes", nullptr, float_or_double<Interpolate>}};
  for (const char* name : {"Resize", "Upsample"})
    t.add({.name = name,
           .shape = resize_shape,
           .shape_values_of = shape_values,
           .impls = impls,
           .grad = resize_grad,
           .lower = resize_lower,
           .settings_from = 1});
  t.add({.name = "ResizeGrad",
         .domain = std::string(kOwnDomain),
         .shape = grad_shape,
         .shape_values_of = shape_values,
         .impls = {{"axes", nullptr, float_or_double<Gradient>}},
         .grad = resize_grad_grad,
         .lower = resize_grad_lower});
}

}  // namespace onnxtrain::ops
