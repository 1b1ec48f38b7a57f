// A plan whose memory stays within a limit: values are computed again where it would not.
#pragma once
#include <memory>

#include "plan/plan.hpp"

namespace onnxtrain {

struct LimitedPlan {
  const StateUpdates& updates;
  const OpTable& table;
  const StateTensor& state;
  ThreadPool& pool;
  size_t memory, beside, shares;  // of ProgramOptions

  // `graph`: specialised and through all passes. Throws OT1404 with the smallest limit that would
  // do when recomputing everything is not enough.
  std::unique_ptr<Plan> make(const Graph& graph, const Arena& arena) const;

 private:
  size_t limit() const { return memory > beside ? (memory - beside) / shares : 0; }
  std::unique_ptr<Plan> recomputed(const Graph& graph, const Plan& whole, const Arena& arena) const;
  [[noreturn]] void refuse(size_t bytes) const;
};

// Pages of a new arena, by all threads; only now, since a plan that is over its limit is never run.
void touch_arena(const Plan& plan, ThreadPool& pool);

}  // namespace onnxtrain
