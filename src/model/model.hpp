// The model in memory: inference graph, training steps, bindings, initial values.
// It is made by onnx/ (from a file) or by convert/ (from a recipe) and read by engine/.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.hpp"

namespace onnxtrain {

// What onnx/ keeps of the file a model came from, so that saving loses nothing. Opaque here.
class ModelSource;

// One TrainingInfoProto.
struct TrainingStep {
  // No inputs. Outputs are named; empty (no outputs) when the file has none.
  Graph initialization;
  // The *partial* graph of the file: its own inputs, initializers (values with a constant), nodes
  // and outputs. Values of the main graph that it reads are listed in `captures`
  // (outer: ValueId in Model::main, inner: ValueId here).
  Graph algorithm;
  using Binding = std::pair<std::string, std::string>;  // state variable -> tensor name
  std::vector<Binding> initialization_binding, update_binding;
  bool generated = false;  // made by us since loading: written from this IR, not from the source
  int source_index = -1;   // which training_info of the source it is; -1: none
};

struct Model {
  Graph main;  // pure inference
  std::vector<TrainingStep> training;

  int ir_version = 10;
  std::map<std::string, int> opsets;  // "" is ai.onnx
  std::string producer_name, producer_version, domain, doc;
  int64_t model_version = 0;
  std::map<std::string, std::string> metadata;

  std::shared_ptr<const ModelSource> source;  // null for a model made in memory
  bool main_generated = false;                // main differs from the source: written from the IR

  // Names of state variables: keys of any binding, in order of first appearance.
  std::vector<std::string> state_names() const;
  // The initializer of that name in main or in a training step; null if there is none.
  const Tensor* initializer(const std::string& name) const;
  // Replaces the value of an initializer everywhere it stands (same type and shape).
  void set_initializer(const std::string& name, Tensor value);
  // The main graph's input names that are not initializers.
  std::vector<std::string> input_names() const;
  // Marks ValueDef::state of every initializer that is a key of a binding.
  void mark_state();
};

}  // namespace onnxtrain
