// The stages of making a plan, with their times.
#pragma once
#include <chrono>
#include <utility>
#include <vector>

#include "passes/passes.hpp"
#include "plan/plan.hpp"

namespace onnxtrain {

// Runs the stages of making a plan: names and times each, and looks at the graph after it when
// asked to.
class Stages {
 public:
  Stages(Graph& g, bool verify) : g_(g), verify_(verify) {}
  template <class F>
  void run(const char* name, F stage) {
    const auto start = std::chrono::steady_clock::now();
    const int before = int(g_.nodes.size());
    stage();
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    done_.push_back({name, took.count(), before, int(g_.nodes.size())});
    if (verify_) g_.verify(name);
  }
  void add(const std::vector<PassTime>& passes) {
    for (const PassTime& p : passes)
      done_.push_back({p.name, p.seconds, p.nodes_before, p.nodes_after});
  }
  bool verify() const { return verify_; }
  std::vector<Plan::Stage> take() { return std::move(done_); }

 private:
  Graph& g_;
  bool verify_;
  std::vector<Plan::Stage> done_;
};

}  // namespace onnxtrain
