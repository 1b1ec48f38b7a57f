// Gradients of any outputs with respect to any tensors of a model, on given feeds.
#pragma once
#include "engine/session.hpp"

namespace onnxtrain {

struct GradientRequest {
  std::vector<std::string> of;               // tensors; empty: every floating-point output
  std::vector<std::string> wrt;              // inputs, initializers, intermediate tensors
  std::map<std::string, Tensor> cotangents;  // by name of `of`; ones where absent
};

// One tensor per wrt; zeros where nothing flows.
std::vector<NamedValue> gradients(const Model& model, const Feeds& feeds,
                                  const GradientRequest& request,
                                  const ProgramOptions& options = {});

}  // namespace onnxtrain
