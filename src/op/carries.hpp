// Which values gradients flow along: floating-point tensors and containers of them.
#pragma once
#include "graph/type.hpp"

namespace onnxtrain {

// A type that is not known may carry one.
inline bool carries_gradient(const TypeInfo& t) {
  switch (t.kind) {
    case TypeInfo::Kind::kUnknown:
      return true;
    case TypeInfo::Kind::kTensor:
      return t.elem == DType::kUndefined || dtype_is_differentiable(t.elem);
    case TypeInfo::Kind::kSequence:
    case TypeInfo::Kind::kOptional:
      return !t.inner || carries_gradient(*t.inner);
    default:
      return false;
  }
}

}  // namespace onnxtrain
