// The model in memory: inference graph, training steps, bindings, initial values.
// It is made by onnx/ (from a file) or by convert/ (from a recipe) and read by engine/.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.hpp"

namespace onnxtrain {

// What onnx/ keeps of the file a model came from, so that saving loses nothing. Opaque here.
class ModelSource;

// What a TrainingStep holds; the graphs are changed through it only.
class TrainingStepData {
 public:
  using Binding = std::pair<std::string, std::string>;  // state variable -> tensor name
  std::vector<Binding> initialization_binding, update_binding;
  int source_index = -1;  // which training_info of the source it is; -1: none

 protected:
  Graph initialization_, algorithm_;
  bool generated_ = false;
};

// One TrainingInfoProto.
class TrainingStep : public TrainingStepData {
 public:
  TrainingStep() = default;
  TrainingStep(const TrainingStep& o) : TrainingStepData(o) {}
  TrainingStep(TrainingStep&& o) noexcept : TrainingStepData(std::move(o)) {}
  TrainingStep& operator=(const TrainingStep& o) {
    TrainingStepData::operator=(o);
    return *this;
  }
  TrainingStep& operator=(TrainingStep&& o) noexcept {
    TrainingStepData::operator=(std::move(o));
    return *this;
  }
  ~TrainingStep() = default;

  // No inputs. Outputs are named; empty (no outputs) when the file has none.
  const Graph& initialization = initialization_;
  // The *partial* graph of the file: its own inputs, initializers (values with a constant), nodes
  // and outputs. Values of the main graph that it reads are listed in `captures`
  // (outer: ValueId in Model::main, inner: ValueId here).
  const Graph& algorithm = algorithm_;

  // To change a graph. The step is written from here afterwards, not from the source.
  Graph& edit_initialization() { return generated_ = true, initialization_; }
  Graph& edit_algorithm() { return generated_ = true, algorithm_; }
  bool generated() const { return generated_; }
  // For the reader, who fills them with what the source says.
  Graph& initialization_as_read() { return initialization_; }
  Graph& algorithm_as_read() { return algorithm_; }
  // For marks that files do not hold, such as ValueDef::inference_form.
  ValueDef& mark(ValueId v) { return algorithm_.value(v); }

 private:
  friend class Model;
};

// What a Model holds; its main graph is changed through it only.
class ModelData {
 public:
  std::vector<TrainingStep> training;

  int ir_version = 10;
  std::map<std::string, int> opsets;  // "" is ai.onnx
  std::string producer_name, producer_version, domain, doc;
  int64_t model_version = 0;
  std::map<std::string, std::string> metadata;

  std::shared_ptr<const ModelSource> source;  // null for a model made in memory

 protected:
  Graph main_;
  bool main_generated_ = false;
};

class Model : public ModelData {
 public:
  Model() = default;
  Model(const Model& o) : ModelData(o) {}
  Model(Model&& o) noexcept : ModelData(std::move(o)) {}
  Model& operator=(const Model& o) {
    ModelData::operator=(o);
    return *this;
  }
  Model& operator=(Model&& o) noexcept {
    ModelData::operator=(std::move(o));
    return *this;
  }
  ~Model() = default;

  const Graph& main = main_;  // pure inference

  // To change the main graph. It is written from here afterwards, not from the source.
  Graph& edit_main() { return main_generated_ = true, main_; }
  // The same for a change that may turn out not to be needed: change(graph) says whether it was.
  template <class F>
  bool edit_main_if(F&& change) {
    const bool changed = change(main_);
    main_generated_ |= changed;
    return changed;
  }
  bool main_generated() const { return main_generated_; }
  // For the reader, who fills it with what the source says.
  Graph& main_as_read() { return main_; }
  // Bodies of branches and loops are shared between copies of a model until then.
  void unshare_main() { main_ = main_.clone(); }

  // Names of state variables: keys of any binding, in order of first appearance.
  std::vector<std::string> state_names() const;
  // The initializer of that name in main or in a training step; null if there is none.
  const Tensor* initializer(const std::string& name) const;
  // Replaces the value of an initializer everywhere it stands (same type and shape).
  void set_initializer(const std::string& name, Tensor value);
  // value(name): the new value of an initializer, of the same type and shape; undefined: it stays.
  void replace_initializers(const std::function<Tensor(const std::string&)>& value);
  // The main graph's input names that are not initializers.
  std::vector<std::string> input_names() const;
  // Marks ValueDef::state of every initializer that is a key of a binding.
  void mark_state();

 private:
  template <class F>
  void each_graph(F&& f);
};

}  // namespace onnxtrain
