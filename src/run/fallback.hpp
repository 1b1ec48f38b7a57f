// Nodes that this library does not know, run by another runtime (docs/fallback.md): what stands
// between the graph and a runtime that takes ONNX models.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "op/foreign.hpp"

namespace onnxtrain::run {

class Fallback : public ForeignRunner {
 public:
  // model: the bytes of an ONNX model; about: JSON, the operators in it.
  virtual std::vector<Tensor> run_model(const std::string& model, const std::string& about,
                                        const std::vector<const Tensor*>& inputs,
                                        size_t outputs) = 0;
  std::vector<Tensor> run(const Graph& part, const std::vector<const Tensor*>& inputs) final;
};

}  // namespace onnxtrain::run
