// Shared by the optimizers of our own domain. Each updates one tensor: learning rate R, step number
// T (1 at the first step), weights X, gradient G, state. Settings are float64 tensor attributes,
// because 1 - 0.999 in float32 is wrong in the fifth digit; scalars are computed in float64,
// tensors in their own type.
#pragma once
#include <cmath>

#include "core/threads.hpp"
#include "op/op.hpp"

namespace onnxtrain::ops {

inline double setting(const Node& n, std::string_view key, double def = 0) {
  const Tensor* t = n.tensor(key);
  return t ? t->to_doubles().at(0) : def;
}

// The settings of Adam and its relatives.
struct AdamSettings {
  double beta1, beta2, epsilon, decay;
  explicit AdamSettings(const Node& n, double default_epsilon = 1e-8)
      : beta1(setting(n, "beta1", 0.9)),
        beta2(setting(n, "beta2", 0.999)),
        epsilon(setting(n, "epsilon", default_epsilon)),
        decay(setting(n, "decay")) {}
};
// The same as attributes of a node, and as settings of a record.
Attributes adam_attrs(const OptimizerSettings& s);
std::vector<OptimizerSetting> adam_settings(double lr, OptimizerSetting eps,
                                            OptimizerSetting decay);

inline double read_scalar(const void* p, DType t) {
  return dispatch<float, double, Half, BFloat16, int64_t, int32_t>(
      t, "an optimizer's scalar", [&]<class T>() { return double(*static_cast<const T*>(p)); });
}

inline constexpr const char* kUpdateNoGrad = "an optimizer's update is not differentiated";

// Inputs: `scalars` scalars, then X, G and state of X's type and shape; outputs X1 and new state.
// The last `scalar_states` of the state are scalars of any type.
void optimizer_shape(ShapeCtx& c, int scalars, int scalar_states = 0);

// step(i) updates element i; large tensors are cut among threads at fixed places.
template <class F>
void each_element(const Run& r, int64_t n, F&& step) {
  parallel_for(*r.pool, n, 16384, [&](int64_t b, int64_t e) { step(b, e); });
}

// R and T by the types they have in this plan.
struct LearningRateAndStep {
  DType lr_type, step_type;
  explicit LearningRateAndStep(const Prepare& p)
      : lr_type(p.in(0).dtype), step_type(p.in(1).dtype) {}
  double lr(const Run& r) const { return read_scalar(r.inputs[0], lr_type); }
  double step(const Run& r) const { return read_scalar(r.inputs[1], step_type); }
};

// The kernel for the type of the weights, input `weights`.
template <class F>
Kernel update_kernel(const Prepare& p, int weights, F&& make) {
  return dispatch<float, double, Half, BFloat16>(p.in(weights).dtype, p.node().op, make);
}

// Both moments of an Adam with R and T before X: the mean of the gradients and that of their
// squares. step(kept, gradient, mean, square) is the new weight; kept: the weight after decoupled
// decay.
template <class T, class F>
void update_moments(const Run& r, int64_t n, const AdamSettings& s, double lr, bool decoupled,
                    F&& step) {
  using C = compute_t<T>;
  const C add = C(decoupled ? 0.0 : s.decay), keep = C(decoupled ? 1 - lr * s.decay : 1.0);
  const C c1 = C(1 - s.beta1), b2 = C(s.beta2), c2 = C(1 - s.beta2);
  const T *x = r.in<T>(2), *g = r.in<T>(3), *m = r.in<T>(4), *v = r.in<T>(5);
  T *x1 = r.out<T>(0), *m1 = r.out<T>(1), *v1 = r.out<T>(2);
  each_element(r, n, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      const C grad = C(g[i]) + add * C(x[i]);
      const C mi = C(m[i]) + (grad - C(m[i])) * c1;
      const C vi = C(v[i]) * b2 + grad * grad * c2;
      x1[i] = T(step(C(x[i]) * keep, grad, mi, vi));
      m1[i] = T(mi);
      v1[i] = T(vi);
    }
  });
}

// The record of an update of one tensor: shape, reference kernel, and which memory results take
// over.
template <int scalars, int states, int scalar_states = 0>
Op update_op(std::string name, Kernel (*make)(Prepare&), const char* function) {
  Op op;
  op.name = std::move(name);
  op.domain = std::string(kOwnDomain);
  op.shape = [](ShapeCtx& c) { optimizer_shape(c, scalars, scalar_states); };
  op.impls = {{"ref", nullptr, make}};
  op.no_grad = kUpdateNoGrad;
  op.update = UpdateForm{.scalars = scalars, .states = states};
  op.in_place = {{scalars, 0}};
  for (int k = 0; k < states + scalar_states; ++k) op.in_place.push_back({scalars + 2 + k, 1 + k});
  op.function = function;
  return op;
}

}  // namespace onnxtrain::ops
