// DFT and STFT; gradients are transforms again, in standard operators.
#include <numbers>

#include "kernels/signal/fft.hpp"
#include "op/grad_builder.hpp"
#include "op/needs_shape.hpp"
#include "ops/common/widened_kernel.hpp"

namespace onnxtrain::ops {

namespace {

constexpr int64_t kMostLength = int64_t(1) << 31;

int64_t scalar_of(const Tensor& t, const char* what) {
  std::vector<int64_t> v = t.to_ints();
  if (v.size() != 1) model_error("OT1170", cat(what, " must be one number, got ", v.size()));
  return v[0];
}

struct Transform {
  int64_t axis = 0, length = 0, in = 0, out = 0;  // in and out: entries along the axis
  bool inverse = false, onesided = false, real_in = false, real_out = false;
};

// `axis` and `length` are null when not given.
Transform transform_of(const Node& n, const Shape& x, const int64_t* axis_in,
                       const int64_t* length_in) {
  int64_t rank = int64_t(x.size());
  if (rank < 2 || (x.back() != 1 && x.back() != 2))
    model_error("OT1170", cat(n.label(), " needs an input [..., 1 or 2], got ", to_string(x)));
  Transform t;
  t.axis = normalize_axis(axis_in ? *axis_in : (n.version < 20 && !axis_in ? 1 : -2), rank,
                          "axis of DFT");
  if (t.axis == rank - 1)
    model_error("OT1170", "the axis of DFT is the one of real and imaginary part");
  t.inverse = n.i("inverse", 0) != 0, t.onesided = n.i("onesided", 0) != 0;
  t.in = x[size_t(t.axis)], t.real_in = x.back() == 1;
  t.real_out = t.inverse && t.onesided;
  t.length = length_in ? *length_in : t.real_out ? 2 * (t.in - 1) : t.in;
  if (t.length < 1 || t.length > kMostLength)
    model_error("OT1170", cat("a transform of length ", t.length));
  t.out = t.onesided && !t.inverse ? t.length / 2 + 1 : t.length;
  return t;
}

template <class Ctx, class Get>
Transform dft_of(const Ctx& c, const Shape& x, Get get) {
  int64_t axis, length;
  const int64_t *axis_ptr = nullptr, *length_ptr = nullptr;
  if (c.has(1)) length = scalar_of(get(1), "dft_length"), length_ptr = &length;
  if (c.node().version < 20) {
    axis = c.node().i("axis", 1), axis_ptr = &axis;
  } else if (c.has(2)) {
    axis = scalar_of(get(2), "axis"), axis_ptr = &axis;
  }
  return transform_of(c.node(), x, axis_ptr, length_ptr);
}

void dft_shape(ShapeCtx& c) {
  Transform t = dft_of(c, c.shape(0), [&](int i) -> const Tensor& { return c.value(i); });
  Shape out = c.shape(0);
  out[size_t(t.axis)] = t.out;
  out.back() = t.real_out ? 1 : 2;
  c.set(0, c.dtype(0), out);
}

// One line: gathers, transforms, scatters. Elements lie `stride` complex (or real) numbers apart.
template <class T, class F>
void line(const Transform& t, const F& fft, const T* x, int64_t stride, T* y, typename F::C* data) {
  using C = typename F::C;
  using R = typename C::value_type;
  int64_t given = std::min(t.in, t.real_out ? t.length / 2 + 1 : t.length),
          step = t.real_in ? stride : 2 * stride;
  std::fill_n(data, t.length, C(0));
  for (int64_t k = 0; k < given; ++k)
    data[k] = t.real_in ? C(R(x[k * step])) : C(R(x[k * step]), R(x[k * step + 1]));
  if (t.real_out)
    for (int64_t k = 1; k < (t.length + 1) / 2; ++k) data[t.length - k] = std::conj(data[k]);
  fft.run(data, t.inverse, data + t.length);
  R scale = t.inverse ? R(1.0 / double(t.length)) : R(1);
  for (int64_t k = 0; k < t.out; ++k) {
    if (t.real_out) {
      y[k * stride] = T(data[k].real() * scale);
    } else {
      y[k * 2 * stride] = T(data[k].real() * scale);
      y[k * 2 * stride + 1] = T(data[k].imag() * scale);
    }
  }
}

template <class T, class F>
Kernel make_dft(Prepare& p, const Transform& t) {
  const Shape& x = p.in(0).shape;
  int64_t outer = product(x, 0, size_t(t.axis)),
          inner = product(x, size_t(t.axis) + 1, x.size() - 1);
  auto fft = std::make_shared<F>(t.length);
  int64_t lines = outer * inner, per = t.length + fft->scratch();
  // a block of lines per task, each task with its own piece of the workspace
  int64_t blocks = std::min<int64_t>(lines, 16), grain = blocks ? (lines + blocks - 1) / blocks : 1;
  p.workspace = size_t(blocks * per) * sizeof(typename F::C);
  int64_t xw = t.real_in ? 1 : 2, yw = t.real_out ? 1 : 2;
  return [=](const Run& r) {
    parallel_for(*r.pool, lines, grain, [&](int64_t b, int64_t e) {
      auto* data = static_cast<typename F::C*>(r.workspace) + b / grain * per;
      for (int64_t k = b; k < e; ++k) {
        int64_t o = k / inner, i = k % inner;
        line(t, *fft, r.in<T>(0) + (o * t.in * inner + i) * xw, inner,
             r.out<T>(0) + (o * t.out * inner + i) * yw, data);
      }
    });
  };
}

struct Dft {
  template <class T>
  static Kernel make(Prepare& p) {
    Transform t = dft_of(p, p.in(0).shape, [&](int i) -> const Tensor& { return *p.constant(i); });
    // ONNX's vectors: forward ones are rounded from double precision, inverse ones are numpy's
    // single precision, noise included
    if constexpr (std::is_same_v<T, float>)
      if (t.inverse && !t.real_out && kernels::FloatFft::supports(t.length))
        return make_dft<T, kernels::FloatFft>(p, t);
    return make_dft<T, kernels::Fft>(p, t);
  }
};

// ---------------------------------------------------------------- gradient
ValueId fit(GradBuilder& b, ValueId v, int64_t axis, int64_t have, int64_t want) {
  if (want < have)
    return b.call("Slice",
                  {v, b.constant_ints({0}), b.constant_ints({want}), b.constant_ints({axis})});
  if (want == have) return v;
  int64_t rank = b.need_rank(v);
  std::vector<int64_t> pads(size_t(2 * rank), 0);
  pads[size_t(rank + axis)] = want - have;
  return b.call("Pad", {v, b.constant_ints(pads)});
}

ValueId transform(GradBuilder& b, ValueId v, int64_t axis, int64_t length, bool inverse) {
  GradBuilder::Attrs a{{"inverse", int64_t(inverse)}};
  if (b.opset() >= 20) return b.call("DFT", {v, b.constant_int(length), b.constant_int(axis)}, a);
  a["axis"] = axis;
  return b.call("DFT", {v, b.constant_int(length)}, a);
}

// The adjoint of the real-linear map that the transform is.
ValueId adjoint(GradBuilder& b, ValueId dy, const Transform& t) {
  int64_t last = b.need_rank(dy) - 1;
  auto scaled = [&](ValueId v, double f) { return b.mul(v, b.scalar(f, v)); };
  ValueId v;
  if (!t.inverse) {
    v = fit(b, dy, t.axis, t.out, t.length);
    v = scaled(transform(b, v, t.axis, t.length, true), double(t.length));
    v = fit(b, v, t.axis, t.length, t.in);
  } else if (!t.real_out) {
    v = scaled(transform(b, dy, t.axis, t.length, false), 1.0 / double(t.length));
    v = fit(b, v, t.axis, t.length, t.in);
  } else {
    // every frequency but the first (and the middle one) stands for two
    int64_t half = t.length / 2 + 1;
    v = fit(b, transform(b, dy, t.axis, t.length, false), t.axis, t.length, half);
    Shape s(size_t(last + 1), 1);
    s[size_t(t.axis)] = half;
    Tensor f = dispatch<float, double, Half, BFloat16>(b.dtype(dy), "DFT", [&]<class T>() {
      std::vector<T> w;
      for (int64_t k = 0; k < half; ++k)
        w.push_back(T(float((k == 0 || 2 * k == t.length ? 1.0 : 2.0) / double(t.length))));
      return Tensor::vector<T>(w);
    });
    if (b.dtype(dy) == DType::kDouble)
      for (int64_t k = 0; k < half; ++k)
        f.as<double>()[k] = (k == 0 || 2 * k == t.length ? 1.0 : 2.0) / double(t.length);
    v = fit(b, b.mul(v, b.tensor(f.reshaped(s))), t.axis, half, t.in);
  }
  if (t.real_in)
    v = b.call("Slice", {v, b.constant_ints({0}), b.constant_ints({1}), b.constant_ints({last})});
  return v;
}

struct Known {
  GradBuilder& b;
  const Node& node() const { return b.node(); }
  bool has(int i) const { return b.has(i); }
  const Tensor& get(int i) const {
    const Tensor* t = b.constant(b.x(i));
    if (!t)
      needs_shape("OT1205",
                  cat("the gradient of ", b.node().label(), " needs constant lengths and axes"));
    return *t;
  }
  Shape shape() const {
    if (!b.shape_known(b.x(0)))
      needs_shape("OT1205",
                  cat("the gradient of ", b.node().label(), " needs the shape of its input"));
    return b.shape(b.x(0));
  }
};

std::vector<ValueId> dft_grad(GradBuilder& b) {
  Known k{b};
  std::vector<ValueId> g(size_t(b.inputs()), kNone);
  g[0] = adjoint(b, b.dy(), dft_of(k, k.shape(), [&](int i) -> const Tensor& { return k.get(i); }));
  return g;
}

// ---------------------------------------------------------------- STFT
struct Stft {
  int64_t batch = 0, samples = 0, width = 1, step = 1, length = 0, window = 0, frames = 0, bins = 0;
  bool onesided = true;
};

template <class Ctx, class Get>
Stft stft_of(const Ctx& c, Shape x, const Shape* window, Get get) {
  Stft s;
  if (x.size() == 2) x.push_back(1);  // a real signal [batch, length]
  if (x.size() != 3 || (x[2] != 1 && x[2] != 2))
    model_error(
        "OT1171",
        cat("STFT needs a signal [batch, length] or [batch, length, 1 or 2], got ", to_string(x)));
  s.batch = x[0], s.samples = x[1], s.width = x[2];
  s.step = scalar_of(get(1), "frame_step");
  if (window && window->size() != 1)
    model_error("OT1171", cat("the window has shape ", to_string(*window)));
  s.length = c.has(3) ? scalar_of(get(3), "frame_length") : window ? (*window)[0] : s.samples;
  s.window = window ? (*window)[0] : s.length;
  s.onesided = c.node().i("onesided", 1) != 0;
  if (s.step < 1 || s.step > kMostLength || s.length < 1 || s.length > s.samples ||
      s.window > s.samples)
    model_error("OT1171",
                cat("frames of ", s.length, " every ", s.step, " over a signal of ", s.samples));
  if (s.onesided && s.width == 2) model_error("OT1171", "onesided STFT of a complex signal");
  s.frames = 1 + (s.samples - s.length) / s.step;
  s.bins = s.onesided ? s.length / 2 + 1 : s.length;
  return s;
}

void stft_shape(ShapeCtx& c) {
  Stft s = stft_of(c, c.shape(0), c.has(2) ? &c.shape(2) : nullptr,
                   [&](int i) -> const Tensor& { return c.value(i); });
  c.set(0, c.dtype(0), {s.batch, s.frames, s.bins, 2});
}

Transform frame_transform(const Stft& s) {
  Transform t;
  t.axis = 2, t.length = s.length, t.in = std::min(s.window, s.length), t.out = s.bins;
  t.onesided = s.onesided, t.real_in = s.width == 1;
  return t;
}

struct MakeStft {
  template <class T>
  static Kernel make(Prepare& p) {
    Stft s = stft_of(p, p.in(0).shape, p.has(2) ? &p.in(2).shape : nullptr,
                     [&](int i) -> const Tensor& { return *p.constant(i); });
    Transform t = frame_transform(s);
    auto fft = std::make_shared<kernels::Fft>(s.length);
    int64_t lines = s.batch * s.frames, frame = t.in * s.width,
            data_size = s.length + fft->scratch();
    int64_t blocks = std::min<int64_t>(lines, 16),
            grain = blocks ? (lines + blocks - 1) / blocks : 1;
    size_t per =
        (size_t(data_size) * sizeof(kernels::Fft::C) + size_t(frame) * sizeof(T) + 63) / 64 * 64;
    p.workspace = size_t(blocks) * per;
    bool windowed = p.has(2);
    return [=](const Run& r) {
      const T* w = windowed ? r.in<T>(2) : nullptr;
      parallel_for(*r.pool, lines, grain, [&](int64_t b, int64_t e) {
        char* area = static_cast<char*>(r.workspace) + size_t(b / grain) * per;
        auto* data = reinterpret_cast<kernels::Fft::C*>(area);
        T* cut = reinterpret_cast<T*>(data + data_size);
        for (int64_t k = b; k < e; ++k) {
          int64_t n = k / s.frames, begin = k % s.frames * s.step;
          for (int64_t i = 0; i < t.in; ++i)
            for (int64_t c = 0; c < s.width; ++c) {
              T v = begin + i < s.samples ? r.in<T>(0)[(n * s.samples + begin + i) * s.width + c]
                                          : T(0);
              cut[i * s.width + c] = w ? v * w[i] : v;
            }
          line(t, *fft, cut, 1, r.out<T>(0) + k * s.bins * 2, data);
        }
      });
    };
  }
};

// Where the samples of each frame lie in the signal.
std::vector<int64_t> frame_places(const Stft& s, int64_t in) {
  std::vector<int64_t> at;
  for (int64_t f = 0; f < s.frames; ++f)
    for (int64_t i = 0; i < in; ++i) at.push_back(f * s.step + i);
  return at;
}

// Adds frames [batch, frames, in, width] where they overlap: [batch, covered, width].
ValueId overlapped(GradBuilder& b, const Stft& s, ValueId frames, int64_t in, int64_t covered) {
  if (b.opset() >= 18) {
    ValueId columns = b.call("Reshape", {b.transpose(frames, {0, 3, 2, 1}),
                                         b.constant_ints({s.batch, s.width * in, s.frames})});
    columns = b.call("Col2Im", {columns, b.constant_ints({covered}), b.constant_ints({in})},
                     {{"strides", std::vector<int64_t>{s.step}}});
    return b.transpose(columns, {0, 2, 1});
  }
  // files of opset 17 have no Col2Im
  ValueId rows = b.call("Reshape", {b.transpose(frames, {1, 2, 0, 3}),
                                    b.constant_ints({s.frames * in, s.batch, s.width})});
  ValueId zeros =
      b.call("Expand", {b.scalar(0, frames), b.constant_ints({covered, s.batch, s.width})});
  ValueId index =
      b.tensor(Tensor::vector<int64_t>(frame_places(s, in)).reshaped({s.frames * in, 1}));
  ValueId sum = b.call("ScatterND", {zeros, index, rows}, {{"reduction", std::string("add")}});
  return b.transpose(sum, {1, 0, 2});
}

// Back through the transform, the window and the overlapping frames.
std::vector<ValueId> stft_grad(GradBuilder& b) {
  Known k{b};
  Shape window;
  if (b.has(2)) window = b.shape_known(b.x(2)) ? b.shape(b.x(2)) : Shape{-1};
  Stft s = stft_of(k, k.shape(), b.has(2) ? &window : nullptr,
                   [&](int i) -> const Tensor& { return k.get(i); });
  const bool flat = k.shape().size() == 2;
  Transform t = frame_transform(s);
  ValueId frames = adjoint(b, b.dy(), t), dx = frames;  // [batch, frames, in, width]
  std::vector<ValueId> g(size_t(b.inputs()), kNone);
  ValueId column = kNone;
  if (b.has(2)) {
    ValueId w = t.in < s.window
                    ? b.call("Slice", {b.x(2), b.constant_ints({0}), b.constant_ints({t.in})})
                    : b.x(2);
    column = b.call("Reshape", {w, b.constant_ints({t.in, 1})});
    dx = b.mul(frames, column);
  }
  if (b.wants(0)) {
    int64_t covered = (s.frames - 1) * s.step + t.in;
    g[0] = fit(b, overlapped(b, s, dx, t.in, covered), 1, covered, s.samples);
    if (flat) g[0] = b.squeeze(g[0], {2});
  }
  if (b.has(2) && b.wants(2)) {
    ValueId index =
        b.tensor(Tensor::vector<int64_t>(frame_places(s, t.in)).reshaped({s.frames, t.in}));
    const ValueId signal = flat ? b.unsqueeze(b.x(0), {2}) : b.x(0);
    ValueId cut = b.call("Gather", {signal, index}, {{"axis", int64_t(1)}});
    g[2] = fit(b, b.reduce_sum(b.mul(frames, cut), {0, 1, 3}, false), 0, t.in, s.window);
  }
  return g;
}

}  // namespace

void register_dft(OpTable& t) {
  t.add({.name = "DFT",
         .shape = dft_shape,
         .shape_values = {1, 2},
         .impls = {{"fft", nullptr, float_or_double<Dft>}},
         .grad = dft_grad});
  t.add({.name = "STFT",
         .shape = stft_shape,
         .shape_values = {1, 3},
         .impls = {{"fft", nullptr, float_or_double<MakeStft>}},
         .grad = stft_grad,
         .settings_from = 2});
}

}  // namespace onnxtrain::ops
