// What a node costs at least: the bytes of its operands, each moved once, and its operations.
#pragma once
#include <algorithm>

#include "op/op.hpp"

namespace onnxtrain::ops {

// Every operand once, and `flops`.
inline Cost cost_of(const Prepare& p, double flops) {
  Cost c{flops, 0};
  auto bytes = [](const TensorType& t) {
    return t.present() ? double(t.size()) * double(dtype_size(t.dtype)) : 0;
  };
  for (int i = 0; i < p.inputs(); ++i) c.bytes += bytes(p.in(i));
  for (int i = 0; i < p.outputs(); ++i) c.bytes += bytes(p.out(i));
  return c;
}

// N operations for every element of the largest operand.
template <int N>
Cost cost_per_element(const Prepare& p) {
  int64_t most = 0;
  for (int i = 0; i < p.inputs(); ++i)
    if (p.has(i)) most = std::max(most, p.in(i).size());
  for (int i = 0; i < p.outputs(); ++i)
    if (p.out(i).present()) most = std::max(most, p.out(i).size());
  return cost_of(p, double(N) * double(most));
}

}  // namespace onnxtrain::ops
