// Which initializers are constants of the model by their use, and why (docs/recipe.md, "What is
// trained").
#pragma once
#include <map>
#include <string>
#include <vector>

#include "model/model.hpp"

namespace onnxtrain {

// One place where an initializer is read, seen through casts and reshapings.
struct Use {
  const Graph* graph;
  const Node* node;
  size_t input;     // number of the input; npos: read inside a body that is not followed
  bool main_graph;  // the node lies in the main graph, not in a body
};

class ConstantRules {
 public:
  explicit ConstantRules(const Model& m);

  // Why the initializer is no weight; "" when its use does not say so.
  std::string reason(ValueId v) const;
  std::vector<Use> uses(ValueId v) const;

 private:
  using Consumers = std::vector<std::vector<NodeId>>;
  const Consumers& consumers(const Graph& g) const;
  void add_uses(const Graph& g, ValueId v, bool main_graph, int depth, std::vector<Use>& out) const;
  void find_raw();
  bool is_raw_node(const Node& n) const;
  bool is_raw(ValueId v) const { return v != kNone && raw_[size_t(v)]; }
  bool is_data(ValueId v) const { return v != kNone && data_[size_t(v)]; }
  bool is_trusted(const std::string& name) const;
  bool widens(const Use& u, const Tensor& t) const;
  bool scales_integers(const Use& u) const;
  bool is_layer_matrix(const Use& u) const;
  bool is_layer_bias(const Use& u) const;
  bool is_formula_use(const Use& u, const ValueDef& d) const;
  std::string by_input(ValueId v, const std::vector<Use>& list) const;
  std::string by_arithmetic(ValueId v, const std::vector<Use>& list) const;

  const Model& m_;
  const Graph& g_;
  bool pytorch_, fitted_, has_layers_ = false;
  std::vector<char> data_, raw_;  // depends on the model's inputs; is an input or a rescaled one
  mutable std::map<const Graph*, Consumers> consumers_;
};

// A floating-point input of an operator that is a setting, not a weight.
bool is_setting(const Node& n, size_t input);

}  // namespace onnxtrain
