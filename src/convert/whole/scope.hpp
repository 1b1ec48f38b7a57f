// Graphs inside graphs: a scope is the graph of a body under construction. Values of the scopes
// around it are captured when they are used.
#pragma once
#include <functional>
#include <map>

#include "op/grad_builder.hpp"

namespace onnxtrain::whole {

class Scope {
 public:
  Scope(const OpTable& ops, int opset, Scope* around = nullptr)
      : b(g, ops, Node(), {}, opset), ops_(ops), opset_(opset), around_(around) {}
  // `v` is a value of `from`, which is this scope or one around it.
  ValueId use(const Scope& from, ValueId v);
  // An output of a body is the result of a node of its own.
  ValueId own(ValueId v) { return b.call("Identity", {v}); }
  // Calls with parameters that were not constants; the output's shape is said.
  ValueId slice_rows(ValueId v, ValueId from, ValueId to);
  ValueId one(int64_t v) { return b.constant_ints({v}); }
  ValueId truth(bool v) { return b.tensor(Tensor::scalar<bool>(v)); }
  ValueId number(double v) { return b.scalar(v, DType::kFloat); }

  Graph g;
  GradBuilder b;

  // What a body makes of the carried values (changed in place) beside them, one per iteration.
  using Values = std::vector<ValueId>;
  struct Result {
    Values carried, collected;
  };
  // iteration: scalar int64; `go_on` may be set to a truth value of the body.
  using LoopBody =
      std::function<Values(Scope& body, ValueId iteration, Values& carried, ValueId& go_on)>;
  Result loop(ValueId trips, const Values& start, const LoopBody& make);
  // items: one slice of each of `over`.
  using ScanBody = std::function<Values(Scope& body, const Values& items, Values& carried)>;
  Result scan(const Values& over, const Values& start, const ScanBody& make);

 private:
  // A body's outputs: what it carries, with the types that it began with, and what it collects.
  void give_back(Scope& body, const Values& start, const Values& carried,
                 const Values& collected) const;
  Result finish(Node n, Scope& body, const Values& start, size_t collected);
  const OpTable& ops_;
  int opset_;
  Scope* around_;
  std::map<ValueId, ValueId> captured_;  // of the scope around it -> here
};

}  // namespace onnxtrain::whole
