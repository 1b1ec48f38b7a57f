// GEMMs with a constant right operand: it is packed once, when the plan is made.
#pragma once
#include "kernels/gemm/gemm.hpp"
#include "op/op.hpp"

namespace onnxtrain::ops {

struct PackedPlan {
  simd::GemmPlan plan;
  std::shared_ptr<void> packed;  // null: B is read as it is
  const float* b(const float* given) const {
    return packed ? static_cast<const float*>(packed.get()) : given;
  }
};

// `input` is the number of the right operand. Few rows do not pack at all.
inline PackedPlan plan_gemm(Prepare& p, simd::GemmDesc d, int input) {
  constexpr int64_t kRows = 8, kColumns = 16;
  const Tensor* b = p.constant(input);
  const bool pack = b && d.batch == 1 && d.m >= kRows && d.n >= kColumns && d.k > 0;
  d.packed_b = pack;
  PackedPlan r{simd::GemmPlan::make(d), nullptr};
  if (pack) {
    r.packed = allocate(r.plan.packed_b_bytes());
    r.plan.pack_b(p.pool(), b->as<float>(), static_cast<float*>(r.packed.get()));
  }
  p.workspace = r.plan.workspace_bytes();
  return r;
}

}  // namespace onnxtrain::ops
