// Where the time of a run goes: time, arithmetic and bytes of every node, forward, backward and
// update apart. A Profiler is an observer of runs; without one a run costs nothing.
#pragma once
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "engine/program.hpp"

namespace onnxtrain {

enum class Phase : uint8_t { kForward, kBackward, kUpdate };
const char* phase_name(Phase p);

struct NodeProfile {
  std::string name, op, shapes;
  std::string impl;                  // the kernel that ran; "values": on values, not on tensors
  std::vector<std::string> refused;  // faster ones and why they did not: "onednn: needs float32"
  Phase phase = Phase::kForward;
  Cost cost;  // of one call
  int64_t calls = 0;
  double seconds = 0;  // of all calls
};

// Every node of a plan by NodeId, without times: which kernels were chosen, and at what cost.
std::vector<NodeProfile> describe_nodes(const Plan& plan);

// Peak performance of the machine, measured with our own kernels: a large GEMM, a long sum of two
// vectors.
struct Peak {
  double flops = 0, bytes = 0;  // per second
  static Peak measure(int threads);
  // The share of the nearer limit that a node reaches; 0 when its cost is not known.
  double share(const NodeProfile& n) const;
};

class Profiler final : public StepObserver {
 public:
  // events: how many single calls are kept for a trace (0: sums only).
  explicit Profiler(size_t events = 0) : max_events_(events) {}
  void before(const Plan& plan, const Step& step) override;
  void after(const Plan& plan, const Step& step) override;
  void clear();  // forgets times, not nodes: call after warming up

  std::vector<NodeProfile> nodes() const;  // in the order of the plans
  // How the plans were made: stages and passes in order, equal names of all plans added up.
  std::vector<Plan::Stage> stages() const { return stages_; }
  // Chrome's trace event format: open in chrome://tracing or Perfetto.
  std::string chrome_trace() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Event {
    const Plan* plan;
    NodeId node;
    double begin, seconds;
  };
  std::vector<NodeProfile>& of(const Plan& plan);
  void add_stages(const Plan& plan);
  std::map<const Plan*, std::vector<NodeProfile>> plans_;  // by NodeId
  std::vector<const Plan*> order_;
  std::vector<Plan::Stage> stages_;
  std::vector<Event> events_;
  std::vector<Clock::time_point> begun_;  // nested runs of subgraphs
  Clock::time_point start_ = Clock::now();
  size_t max_events_;
};

}  // namespace onnxtrain
