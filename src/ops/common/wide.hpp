// Gradient rules over 16-bit types that count or add up: in float32.
#pragma once
#include "ops/common/expr.hpp"

namespace onnxtrain::ops {

inline bool is_narrow(DType t) { return t == DType::kFloat16 || t == DType::kBFloat16; }

// 16-bit numbers as float32: float16 has none above 65504 to count or to add squares with.
// b.cast_like takes the result back.
inline Expr widened(Expr x) {
  if (!is_narrow(x.dtype)) return x;
  return {x.b, x.b.call("Cast", {x.v}, {{"to", int64_t(DType::kFloat)}}), DType::kFloat};
}
// The number of elements, beside numbers of the type of `like`.
inline Expr count_of(GradBuilder& b, ValueId v, Expr like) {
  return {b, b.call("Cast", {b.call("Size", {v})}, {{"to", int64_t(like.dtype)}}), like.dtype};
}

// What was computed in float32 back in a 16-bit type; nothing to do for others.
inline ValueId narrowed(GradBuilder& b, ValueId v, DType t) {
  return is_narrow(t) ? b.call("Cast", {v}, {{"to", int64_t(t)}}) : v;
}
// The sum of updates at their indices (`op`: ScatterElements or ScatterND), beginning with zeros:
// 16-bit types are added in float32 (256 + 1 is 256 in bfloat16).
inline ValueId scatter_sum(GradBuilder& b, std::string_view op, ValueId zeros, ValueId indices,
                           ValueId updates, GradBuilder::Attrs attrs = {}) {
  attrs["reduction"] = std::string("add");
  const DType type = b.dtype(updates);
  zeros = widened(Expr{b, zeros, type}).v;
  updates = widened(Expr{b, updates, type}).v;
  return narrowed(b, b.call(op, {zeros, indices, updates}, std::move(attrs)), type);
}

}  // namespace onnxtrain::ops
