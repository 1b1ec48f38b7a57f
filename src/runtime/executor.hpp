// Runs a Plan: a loop over prepared kernels; dynamic steps are shaped and prepared as they come.
#pragma once
#include <functional>
#include <vector>

#include "plan/plan.hpp"

namespace onnxtrain {

// Runs a subgraph with inputs followed by captured values; given by engine/, which can plan it.
using SubgraphRunner =
    std::function<std::vector<Value>(const GraphPtr&, std::vector<Value> inputs, uint64_t step)>;

// Told about every step of a run when there is one (profiler).
struct StepObserver {
  virtual ~StepObserver() = default;
  virtual void before(const Plan& plan, const Step& step) = 0;
  virtual void after(const Plan& plan, const Step& step) = 0;
};

// Judges a run after everything is computed and before any state is written.
struct Guard {
  int loss_output = -1;  // index of the output that must be finite
  // Called with the norm of all that will be read by the writing steps, when it is finite.
  std::function<void(double norm)> before_writes;
  // Processes that write different variables judge together: told what this one has found, and the
  // norm; what all have found afterwards. Called in every run.
  std::function<bool(Guard& here, bool passed, double& norm)> agree = nullptr;
  // Results.
  bool tripped = false;          // something is not finite: nothing was written or assigned
  ValueId bad = kNone;           // that value of the plan's graph
  int gradients = 0, zeros = 0;  // tensors; exactly 0
  int narrow_zeros = 0;          // of float16, 0 or too small for it
  double gradient_norm = -1;     // over what the optimizers read; -1: there are none
  double narrow_squares = 0;     // of the plan's narrow gradients
};

struct RunOptions {
  ThreadPool* pool = nullptr;
  uint64_t seed = 0, step = 0;
  const SubgraphRunner* subgraphs = nullptr;
  StepObserver* observer = nullptr;
  // Called with every tensor a step has made.
  const std::function<void(const Step&, ValueId, const Tensor&)>* inspect = nullptr;
  bool assign_updates = true;  // false: the run ends before the first step that writes state
  Guard* guard = nullptr;
};

// For a plan without dynamic values: data of every graph input in, nothing is allocated. Results
// stay where plan.slots say until the next run.
void run_static(Plan& plan, void* const* inputs, const RunOptions& o);

// inputs: one per graph input of the plan. Results: one per graph output; their memory is fresh.
// wanted: which outputs to return (empty: all).
std::vector<Value> run_plan(Plan& plan, const std::vector<Value>& inputs, const RunOptions& o,
                            const std::vector<char>& wanted = {});

}  // namespace onnxtrain
