// The micro-operations of the fused element-wise engine: contiguous float tiles, looked up by
// name. An element gives the same bits wherever it stands in a tile. Masks are floats (0 is false,
// anything else true; comparisons give 0 or 1).
#pragma once
#include <cstdint>

namespace onnxtrain::simd {

// out[0..n) from in[0..inputs)[0..n); out may be one of the inputs.
using TileFn = void (*)(const float* const* in, float* out, int64_t n, const float* params);

enum class MicroOp : uint8_t {
  // two inputs
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMin,
  kMax,
  kPow,
  kEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kAnd,
  kOr,
  kXor,
  // gradients: in[0] = dy, in[1] = what the comment says
  kReluGrad,       // y or x
  kLeakyReluGrad,  // x; params[0] = slope
  kSigmoidGrad,    // y
  kTanhGrad,       // y
  kGeluGrad,
  kGeluTanhGrad,
  kSiluGrad,      // x
  kSoftplusGrad,  // x
  kClipGrad,      // x; params = low, high
  kSqrtGrad,      // y
  kAbsGrad,       // x
  // one input, with a constant: params[0]
  kAddScalar,
  kSubScalar,
  kScalarSub,
  kMulScalar,
  kDivScalar,
  kScalarDiv,
  kMinScalar,
  kMaxScalar,
  kPowScalar,
  kEqualScalar,
  kLessScalar,
  kLessEqualScalar,
  kGreaterScalar,
  kGreaterEqualScalar,
  // one input
  kCopy,
  kNeg,
  kAbs,
  kSign,
  kSquare,
  kSqrt,
  kRsqrt,
  kReciprocal,
  kExp,
  kExpm1,
  kLog,
  kLog1p,
  kSin,
  kCos,
  kErf,
  kFloor,
  kCeil,
  kRound,
  kNot,
  kRelu,
  kLeakyRelu /* slope */,
  kElu /* alpha */,
  kClip /* low, high */,
  kSigmoid,
  kTanh,
  kSoftplus,
  kGelu,
  kGeluTanh,
  kSilu,
  kHardSigmoid /* alpha, beta */,
  kHardSwish,
  kAffine,  // params[0] * x + params[1]
  // two inputs with constants
  kAxpy,   // params[0] * in[0] + in[1]
  kAxpby,  // params[0] * in[0] + params[1] * in[1]
  // three inputs
  kFma,    // in[0] * in[1] + in[2]
  kWhere,  // in[0] ? in[1] : in[2]
  kCount
};

struct MicroOpInfo {
  const char* name;
  uint8_t inputs, params;
};

// Its arity; nullptr-free for every value below kCount.
const MicroOpInfo& micro_op_info(MicroOp op);
// The function for this processor.
TileFn micro_op(MicroOp op);

// Boolean tensors (one byte each) to float masks and back.
void mask_from_bytes(const uint8_t* in, float* out, int64_t n);
void bytes_from_mask(const float* in, uint8_t* out, int64_t n);

}  // namespace onnxtrain::simd
