// Where does a value that is not finite come from? Recorded while a step is run again, then traced
// back from the bad value to the node that made it out of good ones.
#pragma once
#include <string>
#include <vector>

#include "plan/plan.hpp"

namespace onnxtrain {

class NotFiniteTrace {
 public:
  NotFiniteTrace(const Plan& plan, const std::vector<Value>& inputs);
  void record(const Step& s, ValueId v, const Tensor& t);  // after the step ran
  // The loss or a value that an optimizer reads that is not finite; kNone if there is none.
  ValueId first_bad(ValueId loss) const;
  // "w_grad" for what the optimizer of 'w' reads, whatever the plan calls it; "var" for the new
  // value of a running statistic; else its own name
  std::string name(ValueId bad) const;
  // "output 'y' of 'Exp_14' (Exp)", "input 'x'", "state variable 'w', before the step"
  std::string origin(ValueId bad) const;

 private:
  ValueId real(ValueId v) const;  // what a view looks at
  std::string describe(ValueId v) const;
  std::string from_constant(ValueId v) const;
  const Plan& plan_;
  std::vector<unsigned> kinds_;  // by value: mask of NotFinite when it was made
  std::vector<char> given_;      // it only repeats what constants hold (masks of -inf)
  std::vector<char> step_;       // by node: it has a step (views have none)
};

}  // namespace onnxtrain
