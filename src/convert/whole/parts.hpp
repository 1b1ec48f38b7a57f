// What the body of a whole training is made of: steps, and the evaluation of a batch, as graphs
// whose constants are inputs, so that they stand once in the outermost graph.
#pragma once
#include <set>

#include "convert/portable/evaluation.hpp"
#include "convert/whole/scope.hpp"
#include "convert/whole/whole.hpp"

namespace onnxtrain::whole {

// One section of a step, or an evaluation, that can be written any number of times.
class Part {
 public:
  Part(StepModel s, Scope& root);
  const StepModel& step() const { return step_; }
  // given(name): the value in `s` of an input. Values of the outputs, in their order.
  std::vector<ValueId> write(Scope& s, const Scope& root,
                             const std::function<ValueId(const StepInput&)>& given) const;
  int output(std::string_view role) const;  // -1: none

 private:
  StepModel step_;
  Graph graph_;
  std::vector<ValueId> constants_;  // of the root, inputs of graph_ after the step's
};

// Inputs whose first dimension counts rows, and what that dimension is called or fixed to.
struct RowInputs {
  std::set<std::string> names;
  std::set<std::string> symbols;
  int64_t fixed = 0;  // the file says it: every batch has that many rows
};
RowInputs row_inputs(const Model& m);

}  // namespace onnxtrain::whole
