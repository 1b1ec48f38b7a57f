// Cast, CastLike and BitCast. Every pair of types goes through one of four carriers (float, double,
// int64, uint64) in tiles that stay in the cache: 25 loaders and 4 x 25 storers instead of 625
// loops.
#include <bit>
#include <cstring>

#include "ops/common/cast_kernel.hpp"
#include "ops/common/elementwise_kernel.hpp"
#include "ops/common/elementwise_program.hpp"

namespace onnxtrain::ops {

namespace {

// The type that Cast names.
DType named_target(const Node& n) {
  const Attr* to = n.find("to");
  if (!to) model_error("OT1130", cat(n.op, " has no attribute 'to'"));
  // opset 1 names the type by a string: "FLOAT", "INT64", ...
  if (const std::string* s = std::get_if<std::string>(to)) {
    std::string lower;
    for (char ch : *s) lower += char(std::tolower(uint8_t(ch)));
    DType t = dtype_from_name(lower);
    if (t == DType::kUndefined) model_error("OT1130", cat("Cast to the unknown type '", *s, "'"));
    return t;
  }
  int64_t v = n.i("to", 0);
  if (v <= 0 || v >= kDTypeCount) model_error("OT1130", cat(n.op, " to the unknown type ", v));
  return DType(v);
}

DType target_of(ShapeCtx& c) {
  return c.node().op == "CastLike" ? c.dtype(1) : named_target(c.node());
}

CastOptions options_of(const Node& n) {
  CastOptions o;
  o.saturate = n.i("saturate", 1) != 0;
  std::string mode = n.s("round_mode", "up");
  if (mode == "down")
    o.round = E8M0Round::kDown;
  else if (mode == "nearest")
    o.round = E8M0Round::kNearest;
  else if (mode != "up")
    model_error("OT1130", cat("round_mode of ", n.op, " is '", mode, "'"));
  return o;
}

void cast_shape(ShapeCtx& c) {
  DType to = target_of(c);
  check_castable(c.dtype(0));
  check_castable(to);
  options_of(c.node());
  c.set(0, to, c.shape(0));
}

Kernel make_cast(Prepare& p) {
  DType from = p.in(0).dtype, to = p.out(0).dtype;
  CastOptions o = options_of(p.node());
  int64_t n = p.out(0).size();
  size_t from_size = dtype_size(from), to_size = dtype_size(to);
  bool strings = from == DType::kString || to == DType::kString;
  return [=](const Run& r) {
    const char* x = r.in<char>(0);
    char* y = r.out<char>(0);
    // text may be wrong, and an error must not leave a pool task
    if (strings) return cast_elements(from, x, to, y, n, o);
    parallel_for(*r.pool, n, kGrain, [&](int64_t b, int64_t e) {
      cast_elements(from, x + size_t(b) * from_size, to, y + size_t(b) * to_size, e - b, o);
    });
  };
}

std::vector<ValueId> cast_grad(GradBuilder& b) {
  std::vector<ValueId> g(size_t(b.inputs()), kNone);
  // an integer or boolean in between stops the gradient; a type that is not known yet may be one
  auto flows = [&](ValueId v) {
    return b.dtype(v) == DType::kUndefined || dtype_is_differentiable(b.dtype(v));
  };
  // what Cast makes is known where nobody has inferred types yet (the body of a loop)
  if (b.node().op == "Cast" && !dtype_is_differentiable(named_target(b.node()))) return g;
  if (flows(b.x(0)) && flows(b.y())) g[0] = b.cast_like(b.dy(), b.x(0));
  return g;
}

bool packed(DType t) {
  switch (t) {
    case DType::kInt4:
    case DType::kUint4:
    case DType::kInt2:
    case DType::kUint2:
    case DType::kFloat4E2M1:
      return true;
    default:
      return false;
  }
}

int bits_of(DType t) {
  if (t == DType::kInt2 || t == DType::kUint2) return 2;
  return packed(t) ? 4 : int(dtype_size(t)) * 8;
}

void bitcast_shape(ShapeCtx& c) {
  DType to = target_of(c), from = c.dtype(0);
  if (from == DType::kString || to == DType::kString) unsupported_dtype(DType::kString, "BitCast");
  if (bits_of(from) != bits_of(to))
    model_error("OT1130", cat("BitCast from ", dtype_name(from), " to ", dtype_name(to),
                              ", which have different sizes"));
  c.set(0, to, c.shape(0));
}

Kernel make_bitcast(Prepare& p) {
  int64_t n = p.out(0).size();
  DType to = p.out(0).dtype;
  size_t bytes = size_t(n) * dtype_size(to);
  if (!packed(to) || to == p.in(0).dtype)
    return [bytes](const Run& r) {
      if (bytes) std::memcpy(r.outputs[0], r.inputs[0], bytes);
    };
  // small types keep their value in a byte: the sign must be spread or taken away
  int shift = 8 - bits_of(to);
  bool is_signed = to == DType::kInt4 || to == DType::kInt2;
  return [n, shift, is_signed](const Run& r) {
    const uint8_t* x = r.in<uint8_t>(0);
    uint8_t* y = r.out<uint8_t>(0);
    for (int64_t i = 0; i < n; ++i) {
      uint8_t high = uint8_t(x[i] << shift);
      y[i] = is_signed ? uint8_t(int8_t(high) >> shift) : uint8_t(high >> shift);
    }
  };
}

}  // namespace

void register_cast(OpTable& t) {
  // in a fused chain a mask is already the number that it is cast to
  t.add({.name = "Cast",
         .shape = cast_shape,
         .impls = {{"ref", nullptr, make_cast}},
         .grad = cast_grad,
         .micro_op = int(simd::MicroOp::kCopy)});
  t.add({.name = "CastLike",
         .shape = cast_shape,
         .impls = {{"ref", nullptr, make_cast}},
         .grad = cast_grad});
  t.add({.name = "BitCast",
         .shape = bitcast_shape,
         .impls = {{"ref", nullptr, make_bitcast}},
         .no_grad = "it reads the bits of a number, which has no derivative"});
}

}  // namespace onnxtrain::ops
