// A value as a permuted view of one further up: reshapes and transposes between the two are looked
// through.
#pragma once
#include "passes/chains.hpp"

namespace onnxtrain {

struct Strided {
  ValueId base = kNone;
  Shape strides;  // one per dimension of the value, in elements of base
};

// The view of `v` on the value furthest up whose dimension `unit` has stride 1; base is kNone when
// there is none.
Strided strided_view(const Chains& c, ValueId v, size_t unit);

}  // namespace onnxtrain
