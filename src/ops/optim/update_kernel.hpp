// Optimizers of our own domain as vector updates: one tensor (Adam, Sgd, ...) or many at once
// (MultiUpdate, which the pass group_updates makes).
#pragma once
#include <optional>

#include "kernels/optim/optim.hpp"
#include "op/op.hpp"

namespace onnxtrain::ops {

struct UpdateRule {
  enum class Kind : uint8_t { kSgd, kAdam, kLion } kind = Kind::kSgd;
  int scalars = 1, states = 0;  // R (and T), and tensors of state per weight
  bool decoupled = false, keras = false, ams = false;
  int scaled = 0;  // 1: the last input is a factor of all gradients
  double beta1 = 0, beta2 = 0, epsilon = 0, decay = 0;

  // The rule of operator `op` with the attributes of `n`; none when there is no vector form.
  static std::optional<UpdateRule> of(std::string_view op, const Node& n);
  void run(ThreadPool& pool, const simd::OptimList& list, double rate, double step,
           float factor) const;
  // Operands per tensor: X, G, states.
  int width() const { return 2 + states; }
};

// Inputs: scalars, then X, G and states of each tensor, then the factor if the rule is scaled;
// outputs: X and states of each tensor.
Kernel make_simd_update(Prepare& p);
std::string refuses_simd_update(const Prepare& p);

}  // namespace onnxtrain::ops
