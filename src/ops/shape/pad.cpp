// Pad in all modes (constant, reflect, edge, wrap) and PadGrad(dy, shape, pads, axes) for the modes
// that repeat elements. Pads may be negative: then they crop.
#include <cstring>

#include "op/grad_builder.hpp"
#include "ops/common/cast_kernel.hpp"
#include "ops/common/movement_lower.hpp"
#include "ops/common/strided_copy_kernel.hpp"

namespace onnxtrain::ops {

namespace {

using Ints = std::vector<int64_t>;
struct Pads {
  Ints before, after;
};

// Version 1 calls the attribute paddings, 2 pads; since 11 it is an input, since 18 with axes.
Pads pads_of(const Node& n, int64_t rank, const Ints* pads_in, const Ints* axes_in) {
  Ints pads = pads_in ? *pads_in : n.ints(n.version < 2 ? "paddings" : "pads"), axes;
  if (axes_in)
    axes = *axes_in;
  else
    for (int64_t d = 0; d < rank; ++d) axes.push_back(d);
  if (pads.size() != 2 * axes.size())
    model_error("OT1136", cat("Pad has ", pads.size(), " pads for ", axes.size(), " axes"));
  Pads p{Ints(size_t(rank), 0), Ints(size_t(rank), 0)};
  std::vector<char> seen(size_t(rank), 0);
  for (size_t k = 0; k < axes.size(); ++k) {
    size_t d = size_t(normalize_axis(axes[k], rank, "axes of Pad"));
    if (seen[d]) model_error("OT1136", cat("axis ", d, " of Pad is named twice"));
    seen[d] = 1;
    p.before[d] = pads[k];
    p.after[d] = pads[axes.size() + k];
  }
  return p;
}

Shape padded(const Shape& s, const Pads& p, const std::string& mode) {
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    model_error("OT1136", cat("mode of Pad is '", mode, "'"));
  Shape out = s;
  for (size_t d = 0; d < s.size(); ++d) {
    if (__builtin_add_overflow(out[d], p.before[d], &out[d]) ||
        __builtin_add_overflow(out[d], p.after[d], &out[d]) || out[d] < 0)
      model_error("OT1136", cat("Pad of dimension ", d, " of size ", s[d], " by ", p.before[d],
                                " and ", p.after[d]));
    if (s[d] == 0 && out[d] > 0 && mode != "constant")
      model_error("OT1136", cat("Pad by ", mode, " of an empty dimension ", d));
  }
  return out;
}

enum class Mode { kConstant, kReflect, kEdge, kWrap };

Mode mode_named(const std::string& name) {
  if (name == "edge") return Mode::kEdge;
  if (name == "wrap") return Mode::kWrap;
  return name == "reflect" ? Mode::kReflect : Mode::kConstant;
}

// Where output position o comes from; -1: the constant.
int64_t source(int64_t o, int64_t size, Mode mode) {
  if (o >= 0 && o < size) return o;
  if (mode == Mode::kConstant) return -1;
  if (mode == Mode::kEdge) return o < 0 ? 0 : size - 1;
  int64_t period = mode == Mode::kWrap ? size : 2 * (size - 1);
  if (period <= 0) return 0;
  o = (o % period + period) % period;
  return o < size ? o : period - o;
}

// The source of each output position in every dimension, and the run [from, to) of the last one
// that is a plain copy.
struct Map {
  Map(const Shape& in, const Shape& out, const Pads& p, const std::string& mode)
      : sizes(in), in(strides_of(in)), out(out), before(p.before), mode(mode_named(mode)) {
    if (out.empty()) return;
    size_t last = out.size() - 1;
    from = std::clamp<int64_t>(p.before[last], 0, out[last]);
    to = std::clamp<int64_t>(p.before[last] + in[last], from, out[last]);
    for (size_t d = 0; d < last; ++d) rows *= out[d];
  }
  // Offset of the source row of output row r, or -1.
  int64_t row(int64_t r) const {
    int64_t offset = 0;
    for (size_t d = out.size() - 1; d-- > 0;) {
      int64_t s = at(d, r % out[d]);
      r /= out[d];
      if (s < 0) return -1;
      offset += s * in[d];
    }
    return offset;
  }
  int64_t at(size_t d, int64_t o) const { return source(o - before[d], sizes[d], mode); }
  // Of the last dimension.
  int64_t last(int64_t o) const { return at(out.size() - 1, o); }
  Shape sizes, in, out;
  Ints before;
  Mode mode;
  int64_t from = 0, to = 0, rows = 1;
};

std::string mode_of(const Node& n) { return n.s("mode", "constant"); }

void shape(ShapeCtx& c) {
  Ints pads, axes;
  bool in = c.version() >= 11, with_axes = in && c.has(3);
  if (in) pads = c.ints(1);
  if (with_axes) axes = c.ints(3);
  if (in && c.has(2) && (c.dtype(2) != c.dtype(0) || c.in(2).size() != 1))
    model_error("OT1136", "constant_value of Pad is not one element of the data's type");
  Pads p = pads_of(c.node(), c.rank(0), in ? &pads : nullptr, with_axes ? &axes : nullptr);
  c.set(0, c.dtype(0), padded(c.shape(0), p, mode_of(c.node())));
}

Pads pads_of(const Prepare& p, int first, bool in, int64_t rank) {
  Ints pads, axes;
  bool with_axes = in && p.has(first == 1 ? 3 : first + 1);
  if (in) pads = p.constant(first)->to_ints();
  if (with_axes) axes = p.constant(first == 1 ? 3 : first + 1)->to_ints();
  return pads_of(p.node(), rank, in ? &pads : nullptr, with_axes ? &axes : nullptr);
}

template <class T>
void pad_rows(const Run& r, const Map& m, const T& value) {
  const T* x = r.in<T>(0);
  T* y = r.out<T>(0);
  int64_t width = m.out.back();
  if (width == 0) return;
  parallel_for(*r.pool, m.rows, std::max<int64_t>(1, 16 * 1024 / width), [&](int64_t b, int64_t e) {
    for (int64_t k = b; k < e; ++k) {
      T* to = y + k * width;
      int64_t row = m.row(k);
      if (row < 0) {
        std::fill_n(to, width, value);
        continue;
      }
      const T* from = x + row;
      auto edge = [&](int64_t first, int64_t end) {
        if (m.mode == Mode::kConstant) return void(std::fill(to + first, to + end, value));
        for (int64_t o = first; o < end; ++o) to[o] = from[m.last(o)];
      };
      edge(0, m.from);
      if (m.to > m.from) std::copy_n(from + m.last(m.from), m.to - m.from, to + m.from);
      edge(m.to, width);
    }
  });
}

Kernel make(Prepare& p) {
  bool in = p.version() >= 11;
  int64_t rank = int64_t(p.in(0).shape.size());
  DType t = p.in(0).dtype;
  bool given = in && p.has(2);
  float attr_value = in ? 0.0f : p.node().f("value", 0);
  if (rank == 0)
    return dispatch_size(
        t, []<class T>() -> Kernel { return [](const Run& r) { *r.out<T>(0) = *r.in<T>(0); }; });
  Map map(p.in(0).shape, p.out(0).shape, pads_of(p, 1, in, rank), mode_of(p.node()));
  return dispatch_size(t, [&]<class T>() -> Kernel {
    T fixed{};
    if constexpr (std::is_trivially_copyable_v<T>)
      if (!in && attr_value != 0) cast_elements(DType::kFloat, &attr_value, t, &fixed, 1, {});
    return [map, given, fixed](const Run& r) { pad_rows<T>(r, map, given ? *r.in<T>(2) : fixed); };
  });
}

std::vector<ValueId> grad(GradBuilder& b) {
  std::vector<ValueId> g(size_t(b.inputs()), kNone);
  bool in = b.node().version >= 11;
  ValueId pads =
      in ? b.x(1) : b.constant_ints(b.node().ints(b.node().version < 2 ? "paddings" : "pads"));
  ValueId axes = b.has(3) ? b.x(3) : kNone;
  std::string mode = mode_of(b.node());
  if (b.wants(0)) {
    if (mode ==
        "constant") {  // padding by the negative crops, and fills what was cropped with zeros
      std::vector<ValueId> args = {b.dy(), b.neg(pads)};
      if (axes != kNone) args.insert(args.end(), {kNone, axes});
      g[0] = b.call("Pad", args);
    } else {
      std::vector<ValueId> args = {b.dy(), b.shape_of(b.x(0)), pads};
      if (axes != kNone) args.push_back(axes);
      g[0] = b.own("PadGrad", args, {{"mode", mode}});
    }
  }
  if (in && b.has(2) && b.wants(2) && mode == "constant") {
    std::vector<ValueId> args = {b.zeros_like(b.x(0)), pads, b.scalar(1, b.x(0))};
    if (axes != kNone) args.push_back(axes);
    ValueId sum =
        b.call("ReduceSum", {b.mul(b.dy(), b.call("Pad", args))}, {{"keepdims", int64_t(0)}});
    g[2] = b.reshape_like(sum, b.x(2));
  }
  return g;
}

// ---------------------------------------------------------------- PadGrad
void back_shape(ShapeCtx& c) {
  Shape s = c.ints(1);
  num_elements(s);
  Ints pads = c.ints(2), axes;
  if (c.has(3)) axes = c.ints(3);
  Pads p = pads_of(c.node(), int64_t(s.size()), &pads, c.has(3) ? &axes : nullptr);
  if (padded(s, p, mode_of(c.node())) != c.shape(0))
    model_error("OT1136",
                cat("PadGrad of ", to_string(c.shape(0)), " does not fit ", to_string(s)));
  c.set(0, c.dtype(0), s);
}

Kernel make_back(Prepare& p) {
  const Shape& s = p.out(0).shape;
  int64_t n = p.out(0).size(), rank = int64_t(s.size());
  return dispatch<float, double, Half, BFloat16>(
      p.in(0).dtype, "PadGrad", [&]<class T>() -> Kernel {
        using C = compute_t<T>;
        if (rank == 0) return [](const Run& r) { *r.out<T>(0) = *r.in<T>(0); };
        Map map(s, p.in(0).shape, pads_of(p, 2, true, rank), mode_of(p.node()));
        p.workspace = size_t(n) * sizeof(C);
        return [map, n](const Run& r) {
          C* sum = static_cast<C*>(r.workspace);
          std::fill_n(sum, n, C(0));
          int64_t width = map.out.back();
          for (int64_t k = 0; k < map.rows; ++k) {
            int64_t row = map.row(k);
            for (int64_t o = 0; o < width && row >= 0; ++o)
              if (int64_t at = map.last(o); at >= 0) sum[row + at] += C(r.in<T>(0)[k * width + o]);
          }
          for (int64_t i = 0; i < n; ++i) r.out<T>(0)[i] = T(sum[i]);
        };
      });
}

std::vector<ValueId> pad_again(GradBuilder& b, ValueId v) {
  std::vector<ValueId> args = {v, b.x(2)};
  if (b.has(3)) args.insert(args.end(), {kNone, b.x(3)});
  return args;
}
std::vector<ValueId> back_grad(GradBuilder& b) {
  std::vector<ValueId> g(size_t(b.inputs()), kNone);
  g[0] = b.call("Pad", pad_again(b, b.dy()), {{"mode", mode_of(b.node())}});
  return g;
}
std::vector<ValueId> back_lower(GradBuilder& b) {
  ValueId from =
      b.call("Pad", pad_again(b, element_numbers(b, b.x(1))), {{"mode", mode_of(b.node())}});
  return {scatter_add_elements(b, b.x(0), from, b.x(1))};
}

}  // namespace

void register_pad(OpTable& t) {
  add_moving_op(
      t, "Pad",
      {shape, make, grad, back_shape, make_back, back_grad, back_lower, {1, 3}, {1, 2, 3}, 1});
}

}  // namespace onnxtrain::ops
