// Optimizer state and updates that are shared out among processes: which updates of a step belong
// together, which of them every element has for itself, and the update of one process.
#pragma once
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "distributed/split.hpp"
#include "op/computed_input.hpp"

namespace onnxtrain {

// State variables whose new values are computed together, from gradients that nobody else needs.
struct ShardUnit {
  struct Variable {
    std::string name;
    ValueId next;       // its new value
    bool slot = false;  // only this update reads it: the optimizer's own
  };
  std::vector<Variable> variables;
  std::vector<ValueId> sums;  // inputs: gradients
  std::vector<NodeId> nodes;  // that make the new values
  bool by_element = false;    // of one shape, and every element by itself
};

struct ShardPlan {
  std::vector<ShardUnit> units;   // that are shared out
  bool whole_gradients = false;   // something needs all gradients in every process (a global norm)
  std::vector<char> everywhere;   // by ValueId: every process computes it whole
  std::vector<std::string> kept;  // "'w': why", what is not shared out
};

// `g`: the update of a step (SplitStep::update), `t`: the same with concrete types. gradients:
// inputs that may be shared out. elsewhere: state variables that others read too.
ShardPlan plan_shards(const Graph& g, const Graph& t, const SplitStep::Updates& updates,
                      const std::set<std::string>& gradients,
                      const std::set<std::string>& elsewhere, const OpTable& table);

// An optimizer node that updates several tensors becomes one node for each.
void separate_updates(Graph& g, const OpTable& table);

// Elements of a tensor as a tensor of the same rank, in the same memory.
Tensor elements_of(const Tensor& t, int64_t from, int64_t to);

// What one process updates: a whole unit, or elements of it.
struct ShardPiece {
  size_t unit;
  int64_t from = 0, to = -1;  // elements; to < 0: the whole unit
  // The name of a variable, or of a gradient, in the graph below.
  std::string name(const std::string& whole) const {
    return to < 0 ? whole : cat(whole, "[", from, ":", to, "]");
  }
};

// The update of one process: what every process does, and its pieces. updates: in and out.
using StateVariable = std::function<const Tensor&(const std::string&)>;
Graph shard_graph(const Graph& g, const Graph& t, SplitStep::Updates& updates,
                  const ShardPlan& plan, const std::vector<ShardPiece>& pieces,
                  const StateVariable& variable);

}  // namespace onnxtrain
