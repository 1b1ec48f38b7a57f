// QuantizeLinear and DequantizeLinear: per tensor, per axis and in blocks; integers down to 2 bits,
// float8, float4.
#include <cmath>

#include "op/grad_builder.hpp"
#include "op/needs_shape.hpp"
#include "ops/common/cast_kernel.hpp"

namespace onnxtrain::ops {

namespace {

constexpr int64_t kBlock = 512;  // elements converted at a time

// Which scale belongs to element e of x.
struct Scales {
  int64_t size = 0, dim = 1, inner = 1, block = 1, per_outer = 0;
  int64_t at(int64_t e) const {
    if (size == 1) return 0;
    int64_t i = e % inner, a = e / inner % dim, o = e / inner / dim;
    return per_outer == 0 ? a : (o * per_outer + a / block) * inner + i;
  }
};

Scales scales_of(const Node& n, const Shape& x, const Shape& scale) {
  Scales s;
  s.size = num_elements(scale);
  int64_t rank = int64_t(x.size()), block = n.i("block_size", 0);
  if (block < 0) model_error("OT1175", cat("block_size of ", n.label(), " is ", block));
  if (scale.empty() || (scale.size() == 1 && scale[0] == 1)) return s;
  int64_t axis = rank == 1 ? 0 : normalize_axis(n.i("axis", 1), rank, "axis of a quantisation");
  s.dim = x[size_t(axis)];
  s.inner = product(x, size_t(axis) + 1, x.size());
  Shape want = x;
  if (block == 0) {
    want = {s.dim};
  } else {
    s.block = block, s.per_outer = want[size_t(axis)] = (s.dim + block - 1) / block;
  }
  if (scale != want)
    model_error("OT1175",
                cat("scales of shape ", to_string(scale), " do not fit an input of shape ",
                    to_string(x), ", expected ", to_string(want)));
  return s;
}

struct Range {
  bool integer;
  double low, high;
};
Range range_of(DType t) {
  switch (t) {
    case DType::kUint8:
      return {true, 0, 255};
    case DType::kInt8:
      return {true, -128, 127};
    case DType::kUint16:
      return {true, 0, 65535};
    case DType::kInt16:
      return {true, -32768, 32767};
    case DType::kUint4:
      return {true, 0, 15};
    case DType::kInt4:
      return {true, -8, 7};
    case DType::kUint2:
      return {true, 0, 3};
    case DType::kInt2:
      return {true, -2, 1};
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E4M3FNUZ:
    case DType::kFloat8E5M2:
    case DType::kFloat8E5M2FNUZ:
    case DType::kFloat4E2M1:
      return {false, 0, 0};
    default:
      unsupported_dtype(t, "QuantizeLinear");
  }
}

void check_zero_point(ShapeCtx& c) {
  if (c.has(2) && c.shape(2) != c.shape(1) &&
      !(num_elements(c.shape(2)) == 1 && num_elements(c.shape(1)) == 1))
    model_error("OT1175", cat("the zero point has shape ", to_string(c.shape(2)), ", the scale ",
                              to_string(c.shape(1))));
}

DType given_type(const Node& n) {
  int64_t t = n.i("output_dtype", 0);
  if (t < 0 || t >= kDTypeCount)
    model_error("OT1175", cat("output_dtype of ", n.label(), " is ", t));
  return DType(t);
}

void quantize_shape(ShapeCtx& c) {
  scales_of(c.node(), c.shape(0), c.shape(1));
  check_zero_point(c);
  DType t = given_type(c.node());
  if (c.has(2)) {
    if (t != DType::kUndefined && t != c.dtype(2))
      model_error("OT1175", "output_dtype differs from the type of the zero point");
    t = c.dtype(2);
  }
  if (t == DType::kUndefined) t = DType::kUint8;
  range_of(t);
  c.set(0, t, c.shape(0));
}

// Small operands as floats, in the workspace.
size_t floats(int64_t n) { return (size_t(n) * sizeof(float) + 63) / 64 * 64; }

Kernel make_quantize(Prepare& p) {
  Scales s = scales_of(p.node(), p.in(0).shape, p.in(1).shape);
  DType from = p.in(0).dtype, to = p.out(0).dtype, scale_type = p.in(1).dtype;
  check_castable(from);
  int64_t precision = p.node().i("precision", 0);
  DType divide = precision > 0 && precision < kDTypeCount ? DType(precision) : scale_type;
  Range range = range_of(to);
  bool zero = p.has(2);
  CastOptions options;
  options.saturate = p.node().i("saturate", 1) != 0 || to == DType::kFloat4E2M1;
  int64_t n = p.in(0).size();
  p.workspace = 2 * floats(s.size);
  return [=](const Run& r) {
    float *scale = static_cast<float*>(r.workspace),
          *zeros = scale + floats(s.size) / sizeof(float);
    cast_elements(scale_type, r.inputs[1], DType::kFloat, scale, s.size, {});
    if (zero) cast_elements(to, r.inputs[2], DType::kFloat, zeros, s.size, {});
    const char* x = static_cast<const char*>(r.inputs[0]);
    char* y = static_cast<char*>(r.outputs[0]);
    parallel_for(*r.pool, n, 16 * kBlock, [&](int64_t b, int64_t e) {
      float v[kBlock];
      int32_t q[kBlock];
      for (int64_t at = b; at < e; at += kBlock) {
        int64_t count = std::min(kBlock, e - at);
        cast_elements(from, x + size_t(at) * dtype_size(from), DType::kFloat, v, count, {});
        for (int64_t k = 0; k < count; ++k) {
          int64_t i = s.at(at + k);
          float d = v[k] / scale[i];
          if (divide == DType::kFloat16)
            d = Half(d);
          else if (divide == DType::kBFloat16)
            d = BFloat16(d);
          double z = zero ? double(zeros[i]) : 0;
          if (range.integer) {
            double rounded = std::nearbyint(double(d)) + z;
            q[k] = std::isnan(rounded)
                       ? 0
                       : int32_t(std::min(std::max(rounded, range.low), range.high));
          } else {
            v[k] = to == DType::kFloat4E2M1 ? d + float(z) : d;
          }
        }
        void* out = y + size_t(at) * dtype_size(to);
        if (range.integer)
          cast_elements(DType::kInt32, q, to, out, count, {});
        else
          cast_elements(DType::kFloat, v, to, out, count, options);
      }
    });
  };
}

void dequantize_shape(ShapeCtx& c) {
  scales_of(c.node(), c.shape(0), c.shape(1));
  check_zero_point(c);
  DType t = given_type(c.node());
  c.set(0, t == DType::kUndefined ? c.dtype(1) : t, c.shape(0));
}

// R: float, or double for scales in double (which only our own checks of gradients have).
template <class R>
Kernel dequantize_in(Prepare& p) {
  constexpr DType kR = DTypeOf<R>::value;
  Scales s = scales_of(p.node(), p.in(0).shape, p.in(1).shape);
  DType from = p.in(0).dtype, to = p.out(0).dtype, scale_type = p.in(1).dtype;
  check_castable(from);
  bool zero = p.has(2);
  DType zero_type = zero ? p.in(2).dtype : DType::kUndefined;
  int64_t n = p.in(0).size();
  size_t bytes = (size_t(s.size) * sizeof(R) + 63) / 64 * 64;
  p.workspace = 2 * bytes;
  return [=](const Run& r) {
    R *scale = static_cast<R*>(r.workspace), *zeros = scale + bytes / sizeof(R);
    cast_elements(scale_type, r.inputs[1], kR, scale, s.size, {});
    if (zero) cast_elements(zero_type, r.inputs[2], kR, zeros, s.size, {});
    const char* x = static_cast<const char*>(r.inputs[0]);
    char* y = static_cast<char*>(r.outputs[0]);
    parallel_for(*r.pool, n, 16 * kBlock, [&](int64_t b, int64_t e) {
      R v[kBlock];
      for (int64_t at = b; at < e; at += kBlock) {
        int64_t count = std::min(kBlock, e - at);
        cast_elements(from, x + size_t(at) * dtype_size(from), kR, v, count, {});
        for (int64_t k = 0; k < count; ++k) {
          int64_t i = s.at(at + k);
          v[k] = (zero ? v[k] - zeros[i] : v[k]) * scale[i];
        }
        cast_elements(kR, v, to, y + size_t(at) * dtype_size(to), count, {});
      }
    });
  };
}

Kernel make_dequantize(Prepare& p) {
  return p.in(1).dtype == DType::kDouble ? dequantize_in<double>(p) : dequantize_in<float>(p);
}

// Largest magnitude of the small floats.
double largest(DType t) {
  switch (t) {
    case DType::kFloat8E4M3FN:
      return 448;
    case DType::kFloat8E4M3FNUZ:
      return 240;
    case DType::kFloat8E5M2:
    case DType::kFloat8E5M2FNUZ:
      return 57344;
    default:
      return 6;  // float4e2m1
  }
}

// Shapes of x and of its scales that broadcast; empty: as they are.
std::pair<Shape, Shape> broadcasting_shapes(const GradBuilder& b) {
  const ValueId x = b.x(0), scale = b.x(1);
  const Node& n = b.node();
  const int64_t rank = b.rank(x);
  if (n.i("block_size", 0) != 0 && b.rank(scale) > 0) {
    if (!b.shape_known(x) || !b.shape_known(scale))
      needs_shape("OT1205", cat("the gradient of ", n.label(), " needs known shapes"));
    const Scales s = scales_of(n, b.shape(x), b.shape(scale));
    if (s.dim % s.block != 0)
      needs_shape("OT1205", "the gradient of block scales needs whole blocks");
    const int64_t outer = num_elements(b.shape(x)) / std::max<int64_t>(1, s.dim * s.inner);
    return {{outer, s.per_outer, s.block, s.inner}, {outer, s.per_outer, 1, s.inner}};
  }
  if (rank < 0 || b.rank(scale) < 0)
    needs_shape("OT1205", cat("the gradient of ", n.label(), " needs known ranks"));
  if (b.rank(scale) == 0 || rank == 0) return {{}, rank == 0 ? Shape{1} : Shape{}};
  if (b.shape_known(scale) && num_elements(b.shape(scale)) == 1) return {};
  const int64_t axis =
      rank == 1 ? 0 : normalize_axis(n.i("axis", 1), rank, "axis of a quantisation");
  Shape small(size_t(rank - axis), 1);
  small[0] = -1;
  return {{}, small};
}

// Straight through: rounding counts as the identity, and nothing passes where the result was
// clipped. PyTorch's fake quantisation has the same rule.
std::vector<ValueId> quantize_grad(GradBuilder& b) {
  std::vector<ValueId> g(size_t(b.inputs()), kNone);
  ValueId x = b.x(0), scale = b.x(1);
  const DType type = b.dtype(b.y());
  if (type == DType::kUndefined)
    needs_shape("OT1205", cat("the gradient of ", b.node().label(), " needs its type"));
  const Range range = range_of(type);
  auto as_float = [&](ValueId v) { return b.call("Cast", {v}, {{"to", int64_t(DType::kFloat)}}); };
  ValueId xs = as_float(x), ss = as_float(scale);
  ValueId zero = b.has(2) && range.integer ? as_float(b.x(2)) : kNone;
  const auto [wide, small] = broadcasting_shapes(b);
  auto shaped = [&](ValueId v, const Shape& to) {
    return v == kNone || to.empty() ? v : b.call("Reshape", {v, b.constant_ints(to)});
  };
  xs = shaped(xs, wide), ss = shaped(ss, small), zero = shaped(zero, small);
  ValueId t = b.div(xs, ss), inside = kNone;
  if (range.integer) {
    ValueId q = b.call("Round", {t});
    if (zero != kNone) q = b.add(q, zero);
    inside = b.call("And", {b.call("GreaterOrEqual", {q, b.scalar(range.low, DType::kFloat)}),
                            b.call("LessOrEqual", {q, b.scalar(range.high, DType::kFloat)})});
  } else {
    inside = b.call("LessOrEqual", {b.call("Abs", {t}), b.scalar(largest(type), DType::kFloat)});
  }
  inside = b.reshape_like(inside, x);
  ValueId dy = b.cast_like(b.dy(), x);
  g[0] = b.call("Where", {inside, dy, b.scalar(0, x)});
  return g;
}

// What QuantizeLinear made of real numbers, they get the gradient of: y = x * (scale / its scale).
ValueId to_quantised(GradBuilder& b) {
  const NodeId k = b.graph().producer_of(b.x(0));
  if (k < 0 || !b.graph().nodes[size_t(k)].is("QuantizeLinear")) return kNone;
  const ValueId own = b.x(1), before = b.graph().nodes[size_t(k)].inputs[1];
  const Tensor *s = b.constant(own), *t = b.constant(before);
  if (own == before || (s && t && s->to_doubles() == t->to_doubles())) return b.dy();
  if (b.rank(own) > 0 && !(s && s->size() == 1))
    model_error("OT1203",
                cat("cannot train through ", b.node().label(),
                    ": its scales are others than those of the QuantizeLinear before it"),
                "use the same scale in both");
  return b.mul(b.dy(), b.div(b.cast_like(own, b.dy()), b.cast_like(before, b.dy())));
}

// y = (x - zero) * scale: the scale has a gradient; x has one where it was quantised here.
std::vector<ValueId> dequantize_grad(GradBuilder& b) {
  std::vector<ValueId> g(size_t(b.inputs()), kNone);
  if (b.wants(0)) g[0] = to_quantised(b);
  if (!b.wants(1)) return g;
  ValueId x = b.x(0), scale = b.x(1), dy = b.cast_like(b.dy(), scale);
  if (!b.shape_known(x) || !b.shape_known(scale))
    needs_shape("OT1205", cat("the gradient of ", b.node().label(), " needs known shapes"));
  Shape xs = b.shape(x), ss = b.shape(scale);
  if (num_elements(xs) == 0) {
    g[1] = b.zeros_like(scale);
    return g;
  }
  Scales s = scales_of(b.node(), xs, ss);
  int64_t type = int64_t(b.dtype(scale));
  ValueId value = b.call("Cast", {x}, {{"to", type}});
  bool one = s.size == 1;
  int64_t outer = one ? 1 : num_elements(xs) / std::max<int64_t>(1, s.dim * s.inner);
  int64_t blocks = s.per_outer ? s.per_outer : s.dim;
  if (s.per_outer && s.dim % s.block != 0)
    needs_shape("OT1205", "the gradient of block scales needs whole blocks");
  // [outer, blocks, block, inner], with scales [outer or 1, blocks, 1, inner or 1]
  Shape split = one ? Shape{1, 1, num_elements(xs), 1} : Shape{outer, blocks, s.block, s.inner};
  Shape small = one           ? Shape{1, 1, 1, 1}
                : s.per_outer ? Shape{outer, blocks, 1, s.inner}
                              : Shape{1, blocks, 1, 1};
  auto shaped = [&](ValueId v, const Shape& to) {
    return b.call("Reshape", {v, b.constant_ints(to)});
  };
  value = shaped(value, split);
  if (b.has(2)) value = b.sub(value, shaped(b.call("Cast", {b.x(2)}, {{"to", type}}), small));
  std::vector<int64_t> axes =
      one || s.per_outer ? std::vector<int64_t>{2} : std::vector<int64_t>{0, 2, 3};
  ValueId sum = b.reduce_sum(b.mul(shaped(dy, split), value), axes, true);
  g[1] = b.reshape_like(sum, scale);
  return g;
}

}  // namespace

void register_quantize(OpTable& t) {
  t.add({.name = "QuantizeLinear",
         .shape = quantize_shape,
         .impls = {{"ref", nullptr, make_quantize}},
         .grad = quantize_grad,
         .settings_from = 1});
  t.add({.name = "DequantizeLinear",
         .shape = dequantize_shape,
         .impls = {{"ref", nullptr, make_dequantize}},
         .grad = dequantize_grad,
         .settings_from = 1,
         .quantised_inputs = {0}});
}

}  // namespace onnxtrain::ops
