// Plan, drop, plan again.
#include "engine/memory_limit.hpp"

#include <algorithm>
#include <map>

#include "core/budget.hpp"
#include "core/memory.hpp"
#include "core/threads.hpp"
#include "passes/recompute.hpp"

namespace onnxtrain {

std::unique_ptr<Plan> LimitedPlan::make(const Graph& graph, const Arena& arena) const {
  auto whole = make_plan(graph.clone(), updates, table, state, pool, arena);
  if (whole->arena_bytes <= limit()) return whole;
  return recomputed(graph, *whole, arena);
}

std::unique_ptr<Plan> LimitedPlan::recomputed(const Graph& graph, const Plan& whole,
                                              const Arena& arena) const {
  std::map<std::string, size_t, std::less<>> scratch;
  for (const Step& s : whole.steps)
    if (s.workspace_bytes) scratch[whole.graph.nodes[size_t(s.node)].name] = s.workspace_bytes;
  auto workspace = [&](const Node& n) {
    auto it = scratch.find(n.recomputes.empty() ? n.name : n.recomputes);
    return it == scratch.end() ? size_t(0) : it->second;
  };
  std::vector<ValueId> keep;
  for (const auto& [v, s] : updates) keep.push_back(v);
  Recomputation r(graph, keep, table);
  // Lifetimes alone are not the arena: aim lower by the difference until it fits. The last try
  // drops all that can be dropped, so what it needs is a limit that works.
  for (size_t target = limit();;) {
    const bool possible = r.reduce_to(target);
    size_t bytes = plan_bytes(r.rewritten(), updates, table, state, workspace);
    if (bytes <= limit()) {
      auto plan = make_plan(r.rewritten(), updates, table, state, pool, arena);
      plan->recomputed = r.copies();
      plan->whole_bytes = whole.arena_bytes;
      if (plan->arena_bytes <= limit()) return plan;
      bytes = plan->arena_bytes;
    }
    if (!possible) refuse(std::min(bytes, whole.arena_bytes));
    const size_t above = bytes - limit() + 1;
    target = target > above ? target - above : 0;
  }
}

void LimitedPlan::refuse(size_t bytes) const {
  const std::string need = memory_size(beside + bytes * shares);
  model_error(
      "OT1404",
      cat("one step needs ", need, " even when everything is recomputed (", memory_size(beside),
          " of it for state variables); the limit is ", memory_size(memory)),
      cat("--memory ", need, ", or a smaller --batch"));
}

void touch_arena(const Plan& plan, ThreadPool& pool) {
  constexpr int64_t kPart = 4 << 20;
  char* base = static_cast<char*>(plan.arena.get());
  const auto bytes = int64_t(plan.arena_bytes);
  if (bytes >= kPart)
    parallel_for(pool, bytes, kPart,
                 [&](int64_t b, int64_t e) { populate(base + b, size_t(e - b)); });
}

}  // namespace onnxtrain
