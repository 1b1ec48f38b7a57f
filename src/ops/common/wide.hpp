// Gradient rules over 16-bit types that count or add up: in float32.
#pragma once
#include "ops/common/expr.hpp"

namespace onnxtrain::ops {

// 16-bit numbers as float32: float16 has none above 65504 to count or to add squares with.
// b.cast_like takes the result back.
inline Expr widened(Expr x) {
  if (x.dtype != DType::kFloat16 && x.dtype != DType::kBFloat16) return x;
  return {x.b, x.b.call("Cast", {x.v}, {{"to", int64_t(DType::kFloat)}}), DType::kFloat};
}
// The number of elements, beside numbers of the type of `like`.
inline Expr count_of(GradBuilder& b, ValueId v, Expr like) {
  return {b, b.call("Cast", {b.call("Size", {v})}, {{"to", int64_t(like.dtype)}}), like.dtype};
}

}  // namespace onnxtrain::ops
