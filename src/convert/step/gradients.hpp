// The Gradient node, gradient accumulation and clipping.
#pragma once
#include "convert/step/optimizers.hpp"

namespace onnxtrain {

// Adds Gradient with xs = the parameters and zs = every data input the loss needs; fills in
// Trained::gradient.
void add_gradient(StepBuilder& s, ValueId loss, std::vector<Trained>& parameters);

// Sums gradients over `accumulate` steps; gradients become the mean of the last ones.
struct Accumulation {
  ValueId updates = kNone;  // bool: this step updates; kNone: every step does
};
Accumulation add_accumulation(StepBuilder& s, const Recipe& r, std::vector<Trained>& parameters);
// Bindings from number `first` on keep the old value, bit-exact, in steps without an update.
void only_every(StepBuilder& s, const Accumulation& a, size_t first);

// By value, then by the norm of all gradients together (PyTorch's clip_grad_value_ and
// clip_grad_norm_).
void clip_gradients(StepBuilder& s, const Recipe& r, std::vector<Trained>& parameters);

std::vector<std::string> trained_names(const std::vector<Trained>& parameters);

}  // namespace onnxtrain
