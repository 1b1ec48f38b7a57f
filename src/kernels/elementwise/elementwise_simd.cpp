// Tile functions of elementwise.hpp, one table per instruction set.
#include "core/error.hpp"
#include "kernels/common/targets.hpp"
#include "kernels/elementwise/elementwise.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/elementwise_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// after highway.h
#include "kernels/common/loops-inl.hpp"
#include "kernels/common/vmath-inl.hpp"
#include "kernels/common/vmath.hpp"

#ifndef ONNXTRAIN_ELEMENTWISE_TABLE
#define ONNXTRAIN_ELEMENTWISE_TABLE
namespace onnxtrain::simd {
struct TileTable {
  TileFn fn[size_t(MicroOp::kCount)];
};
}  // namespace onnxtrain::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace onnxtrain::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using V = vm::V;
using vm::set;

HWY_INLINE V zero() { return hn::Zero(vm::D()); }
template <class M>
HWY_INLINE V truth(M m) {
  return hn::IfThenElseZero(m, set(1.0f));
}
HWY_INLINE auto is_true(V v) { return v != hn::Zero(vm::D()); }
// ONNX Min and Max hand on a NaN from either side.
HWY_INLINE V min_nan(V a, V b) { return hn::IfThenElse(hn::Or(a < b, hn::IsNaN(a)), a, b); }
HWY_INLINE V max_nan(V a, V b) { return hn::IfThenElse(hn::Or(a > b, hn::IsNaN(a)), a, b); }
HWY_INLINE V clip(V x, float low, float high) {
  x = hn::IfThenElse(x < set(low), set(low), x);
  return hn::IfThenElse(x > set(high), set(high), x);
}

// The constants become vectors before the loop.
template <class F>
HWY_INLINE void one(const float* const* in, float* out, int64_t n, F f) {
  map1(in[0], out, n, f);
}
template <class F>
HWY_INLINE void two(const float* const* in, float* out, int64_t n, F f) {
  map2(in[0], in[1], out, n, f);
}

#define OT_TILE(op, arity, expr)                                                \
  t.fn[size_t(MicroOp::op)] = [](const float* const* in, float* out, int64_t n, \
                                 [[maybe_unused]] const float* p) { arity(in, out, n, expr); };
#define OT_UNARY(op, ...) \
  OT_TILE(op, one, [&]([[maybe_unused]] V x) HWY_ATTR { return __VA_ARGS__; })
#define OT_BINARY(op, ...) OT_TILE(op, two, [&](V x, V y) HWY_ATTR { return __VA_ARGS__; })

void fill_binary(TileTable& t) {
  OT_BINARY(kAdd, hn::Add(x, y))
  OT_BINARY(kSub, hn::Sub(x, y))
  OT_BINARY(kMul, hn::Mul(x, y))
  OT_BINARY(kDiv, hn::Div(x, y))
  OT_BINARY(kMin, min_nan(x, y))
  OT_BINARY(kMax, max_nan(x, y))
  OT_BINARY(kPow, vm::pow(x, y))
  OT_BINARY(kEqual, truth(x == y))
  OT_BINARY(kLess, truth(x < y))
  OT_BINARY(kLessEqual, truth(x <= y))
  OT_BINARY(kGreater, truth(x > y))
  OT_BINARY(kGreaterEqual, truth(x >= y))
  OT_BINARY(kAnd, truth(hn::And(is_true(x), is_true(y))))
  OT_BINARY(kOr, truth(hn::Or(is_true(x), is_true(y))))
  OT_BINARY(kXor, truth(hn::Xor(is_true(x), is_true(y))))
  OT_BINARY(kReluGrad, hn::IfThenElseZero(y > zero(), x))
  OT_BINARY(kLeakyReluGrad, hn::IfThenElse(y > zero(), x, hn::Mul(x, set(p[0]))))
  OT_BINARY(kSigmoidGrad, hn::Mul(x, hn::Mul(y, hn::Sub(set(1.0f), y))))
  OT_BINARY(kTanhGrad, hn::Mul(x, hn::NegMulAdd(y, y, set(1.0f))))
  OT_BINARY(kGeluGrad, hn::Mul(x, vm::gelu_grad(y)))
  OT_BINARY(kGeluTanhGrad, hn::Mul(x, vm::gelu_tanh_grad(y)))
  OT_BINARY(kSiluGrad, hn::Mul(x, vm::silu_grad(y)))
  OT_BINARY(kSoftplusGrad, hn::Mul(x, vm::sigmoid(y)))
  OT_BINARY(kClipGrad, hn::IfThenElseZero(hn::And(y >= set(p[0]), y <= set(p[1])), x))
  OT_BINARY(kSqrtGrad, hn::Div(x, hn::Add(y, y)))
  OT_BINARY(kAbsGrad, hn::IfThenZeroElse(y == zero(), hn::Xor(x, hn::And(y, hn::SignBit(vm::D())))))
  OT_BINARY(kAxpy, hn::MulAdd(set(p[0]), x, y))
  OT_BINARY(kAxpby, hn::MulAdd(set(p[0]), x, hn::Mul(set(p[1]), y)))
}

void fill_scalar(TileTable& t) {
  OT_UNARY(kAddScalar, hn::Add(x, set(p[0])))
  OT_UNARY(kSubScalar, hn::Sub(x, set(p[0])))
  OT_UNARY(kScalarSub, hn::Sub(set(p[0]), x))
  OT_UNARY(kMulScalar, hn::Mul(x, set(p[0])))
  OT_UNARY(kDivScalar, hn::Div(x, set(p[0])))
  OT_UNARY(kScalarDiv, hn::Div(set(p[0]), x))
  OT_UNARY(kMinScalar, min_nan(x, set(p[0])))
  OT_UNARY(kMaxScalar, max_nan(x, set(p[0])))
  OT_UNARY(kEqualScalar, truth(x == set(p[0])))
  OT_UNARY(kLessScalar, truth(x < set(p[0])))
  OT_UNARY(kLessEqualScalar, truth(x <= set(p[0])))
  OT_UNARY(kGreaterScalar, truth(x > set(p[0])))
  OT_UNARY(kGreaterEqualScalar, truth(x >= set(p[0])))
  OT_UNARY(kAffine, hn::MulAdd(set(p[0]), x, set(p[1])))
  t.fn[size_t(MicroOp::kPowScalar)] = [](const float* const* in, float* out, int64_t n,
                                         const float* p) { vpow(in[0], p[0], out, n); };
}

void fill_unary(TileTable& t) {
  OT_UNARY(kCopy, x)
  OT_UNARY(kNeg, hn::Neg(x))
  OT_UNARY(kAbs, hn::Abs(x))
  OT_UNARY(kSign, hn::IfThenElse(x == x, hn::Sub(truth(x > zero()), truth(x < zero())), x))
  OT_UNARY(kSquare, hn::Mul(x, x))
  OT_UNARY(kSqrt, hn::Sqrt(x))
  OT_UNARY(kRsqrt, vm::rsqrt(x))
  OT_UNARY(kReciprocal, hn::Div(set(1.0f), x))
  OT_UNARY(kExp, vm::exp(x))
  OT_UNARY(kExpm1, vm::expm1(x))
  OT_UNARY(kLog, vm::log(x))
  OT_UNARY(kLog1p, vm::log1p(x))
  OT_UNARY(kSin, vm::sin(x))
  OT_UNARY(kCos, vm::cos(x))
  OT_UNARY(kErf, vm::erf(x))
  OT_UNARY(kFloor, hn::Floor(x))
  OT_UNARY(kCeil, hn::Ceil(x))
  OT_UNARY(kRound, hn::Round(x))
  OT_UNARY(kNot, truth(x == zero()))
  OT_UNARY(kRelu, vm::relu(x))
  OT_UNARY(kLeakyRelu, hn::IfThenElse(x < zero(), hn::Mul(x, set(p[0])), x))
  OT_UNARY(kElu, hn::IfThenElse(x < zero(), hn::Mul(vm::expm1(x), set(p[0])), x))
  OT_UNARY(kClip, clip(x, p[0], p[1]))
  OT_UNARY(kSigmoid, vm::sigmoid(x))
  OT_UNARY(kTanh, vm::tanh(x))
  OT_UNARY(kSoftplus, vm::softplus(x))
  OT_UNARY(kGelu, vm::gelu(x))
  OT_UNARY(kGeluTanh, vm::gelu_tanh(x))
  OT_UNARY(kSilu, vm::silu(x))
  OT_UNARY(kHardSigmoid, clip(hn::MulAdd(x, set(p[0]), set(p[1])), 0.0f, 1.0f))
  OT_UNARY(kHardSwish, hn::Mul(x, clip(hn::MulAdd(x, set(1.0f / 6), set(0.5f)), 0.0f, 1.0f)))
}

void fill_ternary(TileTable& t) {
  t.fn[size_t(MicroOp::kFma)] = [](const float* const* in, float* out, int64_t n, const float*) {
    map3(in[0], in[1], in[2], out, n, [](V x, V y, V z) HWY_ATTR { return hn::MulAdd(x, y, z); });
  };
  t.fn[size_t(MicroOp::kWhere)] = [](const float* const* in, float* out, int64_t n, const float*) {
    map3(in[0], in[1], in[2], out, n,
         [](V x, V y, V z) HWY_ATTR { return hn::IfThenElse(is_true(x), y, z); });
  };
}

const TileTable* make_tiles() {
  static const TileTable table = [] {
    TileTable t{};
    fill_binary(t);
    fill_scalar(t);
    fill_unary(t);
    fill_ternary(t);
    return t;
  }();
  return &table;
}
#undef OT_TILE
#undef OT_UNARY
#undef OT_BINARY

}  // namespace HWY_NAMESPACE
}  // namespace onnxtrain::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxtrain::simd {
HWY_EXPORT(make_tiles);

TileFn micro_op(MicroOp op) {
  static const TileTable* table = HWY_DYNAMIC_DISPATCH(make_tiles)();
  OT_ASSERT(op < MicroOp::kCount);
  return table->fn[size_t(op)];
}

const MicroOpInfo& micro_op_info(MicroOp op) {
  static constexpr MicroOpInfo kInfo[] = {
      {"Add", 2, 0},           {"Sub", 2, 0},
      {"Mul", 2, 0},           {"Div", 2, 0},
      {"Min", 2, 0},           {"Max", 2, 0},
      {"Pow", 2, 0},           {"Equal", 2, 0},
      {"Less", 2, 0},          {"LessEqual", 2, 0},
      {"Greater", 2, 0},       {"GreaterEqual", 2, 0},
      {"And", 2, 0},           {"Or", 2, 0},
      {"Xor", 2, 0},           {"ReluGrad", 2, 0},
      {"LeakyReluGrad", 2, 1}, {"SigmoidGrad", 2, 0},
      {"TanhGrad", 2, 0},      {"GeluGrad", 2, 0},
      {"GeluTanhGrad", 2, 0},  {"SiluGrad", 2, 0},
      {"SoftplusGrad", 2, 0},  {"ClipGrad", 2, 2},
      {"SqrtGrad", 2, 0},      {"AbsGrad", 2, 0},
      {"AddScalar", 1, 1},     {"SubScalar", 1, 1},
      {"ScalarSub", 1, 1},     {"MulScalar", 1, 1},
      {"DivScalar", 1, 1},     {"ScalarDiv", 1, 1},
      {"MinScalar", 1, 1},     {"MaxScalar", 1, 1},
      {"PowScalar", 1, 1},     {"EqualScalar", 1, 1},
      {"LessScalar", 1, 1},    {"LessEqualScalar", 1, 1},
      {"GreaterScalar", 1, 1}, {"GreaterEqualScalar", 1, 1},
      {"Copy", 1, 0},          {"Neg", 1, 0},
      {"Abs", 1, 0},           {"Sign", 1, 0},
      {"Square", 1, 0},        {"Sqrt", 1, 0},
      {"Rsqrt", 1, 0},         {"Reciprocal", 1, 0},
      {"Exp", 1, 0},           {"Expm1", 1, 0},
      {"Log", 1, 0},           {"Log1p", 1, 0},
      {"Sin", 1, 0},           {"Cos", 1, 0},
      {"Erf", 1, 0},           {"Floor", 1, 0},
      {"Ceil", 1, 0},          {"Round", 1, 0},
      {"Not", 1, 0},           {"Relu", 1, 0},
      {"LeakyRelu", 1, 1},     {"Elu", 1, 1},
      {"Clip", 1, 2},          {"Sigmoid", 1, 0},
      {"Tanh", 1, 0},          {"Softplus", 1, 0},
      {"Gelu", 1, 0},          {"GeluTanh", 1, 0},
      {"Silu", 1, 0},          {"HardSigmoid", 1, 2},
      {"HardSwish", 1, 0},     {"Affine", 1, 2},
      {"Axpy", 2, 1},          {"Axpby", 2, 2},
      {"Fma", 3, 0},           {"Where", 3, 0},
  };
  static_assert(sizeof kInfo / sizeof kInfo[0] == size_t(MicroOp::kCount));
  OT_ASSERT(op < MicroOp::kCount);
  return kInfo[size_t(op)];
}

void mask_from_bytes(const uint8_t* in, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = in[i] ? 1.0f : 0.0f;
}
void bytes_from_mask(const float* in, uint8_t* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = in[i] != 0;
}

}  // namespace onnxtrain::simd
#endif
