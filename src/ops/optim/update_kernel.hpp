// Optimizers of our own domain as vector updates: one tensor (Adam, Sgd, ...) or many at once
// (MultiUpdate, which the pass group_updates makes).
#pragma once
#include "kernels/optim/optim.hpp"
#include "op/op.hpp"

namespace onnxtrain::ops {

// Where the operands of an update stand. Inputs: scalars, then X, G and states of each tensor, then
// a factor of all gradients if the node is scaled; outputs: X and states of each tensor.
struct UpdateLayout {
  UpdateForm form;
  int scaled = 0, tensors = 0;
  // Of an update of one tensor, or of MultiUpdate; a model error when its rule is unknown.
  explicit UpdateLayout(const Node& n);
  int width() const { return 2 + form.states; }  // operands per tensor: X, G, states
  int results() const { return 1 + form.states; }
  int input(int tensor, int operand) const { return form.scalars + tensor * width() + operand; }
  // The operand whose memory result `o` of a tensor takes over: X, then the states behind G.
  int source(int tensor, int o) const { return input(tensor, o == 0 ? 0 : o + 1); }
};

Kernel make_simd_update(Prepare& p);
std::string refuses_simd_update(const Prepare& p);

}  // namespace onnxtrain::ops
