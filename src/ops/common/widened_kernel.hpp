// 16-bit floating point through a float32 kernel: inputs are widened into the workspace, outputs
// rounded back once. One kernel serves float, float16 and bfloat16.
#pragma once
#include "op/op.hpp"

namespace onnxtrain::ops {

inline bool is_16bit_float(DType t) { return t == DType::kFloat16 || t == DType::kBFloat16; }

// The kernel that `make` builds for the node as if every float16 or bfloat16 operand were float32.
Kernel in_float(Prepare& p, Kernel (*make)(Prepare&));

// For an operator whose kernel is a template over float and double, chosen by the type of an input:
//   {"ref", nullptr, float_or_double<Maker, 0>}  with  struct Maker { template <class T> static
//   Kernel make(Prepare&); };
template <class M, int kInput = 0>
Kernel float_or_double(Prepare& p) {
  DType t = p.in(kInput).dtype;
  if (is_16bit_float(t)) return in_float(p, [](Prepare& q) { return M::template make<float>(q); });
  return dispatch<float, double>(t, p.node().op, [&]<class T>() { return M::template make<T>(p); });
}

}  // namespace onnxtrain::ops
