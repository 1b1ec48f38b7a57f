// Program: a graph that can be run. The one place that knows the order: specialise for the shapes
// at hand, expand gradients, passes, plan; plans are cached by input types.
#pragma once
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/budget.hpp"
#include "model/model.hpp"
#include "plan/plan.hpp"
#include "runtime/executor.hpp"
#include "runtime/state.hpp"

namespace onnxtrain {

// True when the environment has ONNXTRAIN_VERIFY_PASSES=1, as all tests have it.
bool verify_by_default();

struct ProgramOptions {
  int threads = 0;                           // 0: default_threads()
  std::vector<std::string> skip_passes;      // names of passes to leave out
  bool verify_passes = verify_by_default();  // looks for damage after every pass; aborts
  // What a run may take. memory: state variables, plans (recomputing where needed) and what shows
  // only while running, together; 0: plans have the limit of the process, the rest the rules of
  // with_defaults().
  Limits limits;
  // Of that, what is not this program's: set by Training, which shares the rest between its
  // sections.
  size_t memory_beside = 0;
  size_t memory_shares = 1;
  // Inputs that need the shape of what they are compared with: targets of a loss by elements.
  std::vector<std::string> targets;
  bool nested = false;  // the body of a loop or a branch: counted against the run around it
};

struct PlannedMemory {
  size_t state = 0;    // variables
  size_t arena = 0;    // of all programs
  size_t whole = 0;    // what the arenas would be without recomputation
  int recomputed = 0;  // nodes that run a second time in a step
};

// A tensor in the caller's memory, for runs that must cost nothing beside their kernels.
struct ArrayRef {
  void* data = nullptr;
  const int64_t* dims = nullptr;
  int rank = 0;
  DType dtype = DType::kUndefined;
};

// A value that is not finite, and where it comes from.
struct NotFiniteValue {
  std::string name;    // "fc1.weight_grad"
  std::string origin;  // "output 'y' of 'Exp_14' (Exp)", "'t' in the gradient of node 'n' (Sqrt)"
};

// Told a state variable's name and the gradient that its update reads.
using GradientReader = std::function<void(const std::string&, const Tensor&)>;

// Names of the passes that join or rewrite nodes: without them a plan has the file's own nodes.
std::vector<std::string> plain_passes();

class Program {
 public:
  // graph: inputs, outputs and state values as in the IR. updates: output value -> state variable.
  Program(Graph graph, std::vector<std::pair<ValueId, std::string>> updates,
          std::shared_ptr<State> state, std::shared_ptr<ThreadPool> pool, ProgramOptions options);
  ~Program();

  const Graph& graph() const { return graph_; }
  // guard: judges the run before anything is written (runtime/executor.hpp); may be null.
  std::vector<Value> run(const std::vector<Value>& inputs, uint64_t seed, uint64_t step,
                         const std::vector<char>& wanted = {}, Guard* guard = nullptr);
  // Runs again without writing anything and says, in words, where the bad value comes from:
  // "output of 'Exp_14'". For after a guard tripped: state must still be as it was.
  NotFiniteValue trace_not_finite(const std::vector<Value>& inputs, uint64_t seed, uint64_t step,
                                  const Guard& guard);
  // Runs again without writing anything and shows what the update of each state variable reads as
  // its gradient.
  void read_gradients(const std::vector<Value>& inputs, uint64_t seed, uint64_t step,
                      const GradientReader& read);
  // The plan for these inputs (made now if needed): for reports.
  Plan& plan_for(const std::vector<Value>& inputs);
  // Runs on a plan that was made for arrays of these types (one per graph input) and has no dynamic
  // values; allocates nothing. Null when there is none: run() makes a plan.
  const Plan* run_again(const ArrayRef* inputs, uint64_t seed, uint64_t step,
                        Guard* guard = nullptr);
  // The plans made so far, most recent first: for reports.
  std::vector<const Plan*> plans() const;
  // What the plans made so far take together.
  PlannedMemory memory() const;
  // Watches every step of every run from now on; null: nobody.
  void set_observer(StepObserver* observer);

 private:
  NotFiniteValue trace(const std::vector<Value>& inputs, uint64_t seed, uint64_t step, int loss,
                       ValueId bad);
  struct Impl;
  Graph graph_;
  std::unique_ptr<Impl> impl_;
};

// main followed by the algorithm of one training step (ruling: lists concatenated); outputs are
// the algorithm's, then main's. Names of Gradient nodes are resolved to values.
Graph combine(const Graph& main, const TrainingStep& step);

}  // namespace onnxtrain
