// Builds the algorithm of one training step: a partial graph beside the main graph, its captures,
// its state variables and its bindings.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "convert/prepare.hpp"
#include "op/grad_builder.hpp"

namespace onnxtrain {

class StepBuilder {
 public:
  StepBuilder(Model& m, const OpTable& ops);
  // A finished step of the model, opened again: its nodes stay, new ones come behind them.
  StepBuilder(Model& m, const OpTable& ops, const TrainingStep& step);

  Model& model() { return model_; }
  const Graph& main() const { return model_.main; }
  Graph& graph() { return graph_; }
  GradBuilder& nodes() { return nodes_; }  // makes nodes of the algorithm
  const OpTable& ops() const { return ops_; }
  int opset() const { return opset_; }

  // The value that stands here for a value of the main graph: its training-mode copy if there is
  // one, otherwise a capture.
  ValueId from_main(ValueId outer);
  void set_training_copy(ValueId outer, ValueId inner) {
    here_[outer] = inner;
    graph_.value(inner).inference_form = outer;
  }
  bool has_training_copy(ValueId outer) const {
    const auto it = here_.find(outer);
    return it != here_.end() && graph_.value(it->second).inference_form == outer;
  }

  // `wanted` if it is free in main and algorithm, otherwise a name made from it; reserved.
  std::string claim(const std::string& wanted);
  void rename(ValueId v, const std::string& wanted) { graph_.value(v).name = claim(wanted); }
  ValueId add_input(const std::string& wanted, TypeInfo type);
  // An initializer of the algorithm.
  ValueId add_state(const std::string& wanted, Tensor initial);
  // After the step, `value` is assigned to the state variable; replaces an earlier assignment.
  void bind(const std::string& key, ValueId value);
  // The value that will be assigned, or kNone.
  ValueId bound(const std::string& key) const;
  const std::vector<std::pair<std::string, ValueId>>& bindings() const { return bindings_; }
  void set_bound(size_t k, ValueId v) { bindings_[k].second = v; }

  void set_type(ValueId v, const TypeInfo& t) { graph_.value(v).type = t; }
  // Double-precision scalar, for attributes and schedules.
  static Tensor real(double v) { return Tensor::scalar<double>(v); }
  ValueId cast(ValueId v, DType to);

  // Outputs and bindings in place; the finished step.
  TrainingStep finish(ValueId loss);
  // The step that was opened again with what is its graph now.
  void finish_again(TrainingStep& step);

 private:
  Model& model_;
  const OpTable& ops_;
  int opset_;
  Graph graph_;
  GradBuilder nodes_;
  std::set<std::string> names_;
  size_t scanned_ = 0;  // values whose names are in names_
  std::map<ValueId, ValueId> here_;
  std::vector<std::pair<std::string, ValueId>> bindings_;
};

// Gives every node of the algorithm a name of its own, different from those of the main graph;
// names of random nodes are their identity, so they come first.
void name_nodes(const Graph& main, Graph& algorithm);

// A scalar of this element type.
Tensor scalar_tensor(double v, DType t);
// All elements v.
Tensor filled(DType t, const Shape& shape, double v);

}  // namespace onnxtrain
