// Conversion of elements between any two types, as ONNX's Cast defines it.
#pragma once
#include "core/dtype.hpp"

namespace onnxtrain::ops {

struct CastOptions {
  bool saturate = true;              // float8: out of range becomes the largest value
  E8M0Round round = E8M0Round::kUp;  // float8e8m0 only
};

// A model error for a type that Cast does not know (complex numbers).
void check_castable(DType t);
// n elements; throws only when one of the types is string and a text is not a number.
void cast_elements(DType from, const void* x, DType to, void* y, int64_t n, const CastOptions& o);

}  // namespace onnxtrain::ops
