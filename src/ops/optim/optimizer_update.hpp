// Shared by the optimizers of our own domain. Each updates one tensor: rate R, step number T (1 at
// the first step), weights X, gradient G, state. Settings are float64 tensor attributes, because
// 1 - 0.999 in float32 is wrong in the fifth digit; scalars are computed in float64, tensors in
// their own type.
#pragma once
#include <cmath>

#include "core/threads.hpp"
#include "op/op.hpp"

namespace onnxtrain::ops {

inline double setting(const Node& n, std::string_view key, double def = 0) {
  const Tensor* t = n.tensor(key);
  return t ? t->to_doubles().at(0) : def;
}

inline double read_scalar(const void* p, DType t) {
  return dispatch<float, double, Half, BFloat16, int64_t, int32_t>(
      t, "an optimizer's scalar", [&]<class T>() { return double(*static_cast<const T*>(p)); });
}

inline constexpr const char* kUpdateNoGrad = "an optimizer's update is not differentiated";

// Inputs: `scalars` scalars, then X, G and state of X's type and shape; outputs X1 and new state.
void optimizer_shape(ShapeCtx& c, int scalars);

// step(i) updates element i; large tensors are cut among threads at fixed places.
template <class F>
void each_element(const Run& r, int64_t n, F&& step) {
  parallel_for(*r.pool, n, 16384, [&](int64_t b, int64_t e) { step(b, e); });
}

// R and T by the types they have in this plan.
struct RateAndStep {
  DType rate_type, step_type;
  explicit RateAndStep(const Prepare& p) : rate_type(p.in(0).dtype), step_type(p.in(1).dtype) {}
  double rate(const Run& r) const { return read_scalar(r.inputs[0], rate_type); }
  double step(const Run& r) const { return read_scalar(r.inputs[1], step_type); }
};

}  // namespace onnxtrain::ops
