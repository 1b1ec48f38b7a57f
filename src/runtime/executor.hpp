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

struct RunOptions {
  ThreadPool* pool = nullptr;
  uint64_t seed = 0, step = 0;
  const SubgraphRunner* subgraphs = nullptr;
  StepObserver* observer = nullptr;
  bool assign_updates = true;
};

// For a plan without dynamic values: data of every graph input in, nothing is allocated. Results
// stay where plan.slots say until the next run.
void run_static(Plan& plan, void* const* inputs, const RunOptions& o);

// inputs: one per graph input of the plan. Results: one per graph output; their memory is fresh.
// wanted: which outputs to return (empty: all).
std::vector<Value> run_plan(Plan& plan, const std::vector<Value>& inputs, const RunOptions& o,
                            const std::vector<char>& wanted = {});

}  // namespace onnxtrain
