// Many short parallel phases, one after the other, inside one job of the pool: cheaper than a job
// each. The work consists of chains that do not depend on each other; in a chain a phase begins
// when the one before has ended. A thread takes a chain for itself as long as there are any, so
// that nobody waits for anybody, and then helps with those that are not done: a core that is slower
// than the others, or taken away for a while, does not hold them up. Threads stay with the same
// task numbers from phase to phase, so that what a task reads every time stays in the caches of one
// core.
#pragma once
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "core/relax.hpp"
#include "core/threads.hpp"

namespace onnxtrain::kernels {

class Phases {
 public:
  // Calls body(phase, chain, task) for every phase of [0, phases), chain and task of a chain. Who
  // runs a task never matters for the result.
  void run(ThreadPool& pool, int64_t phases, int64_t chains, int64_t tasks,
           FunctionRef<void(int64_t, int64_t, int64_t)> body) {
    const int64_t all = chains * tasks;
    const Job job{phases, chains, tasks, pool.threads() < all ? pool.threads() : all, &body};
    if (job.threads <= 1) {
      for (int64_t c = 0; c < chains; ++c)
        for (int64_t p = 0; p < phases; ++p)
          for (int64_t t = 0; t < tasks; ++t) body(p, c, t);
      return;
    }
    prepare(job);
    pool.run(job.threads, [&](int64_t k) { take_part(job, k); });
  }

 private:
  struct alignas(64) Claim {
    std::atomic<int64_t> phase{0};  // the next phase this task has to run in
  };
  struct alignas(64) Chain {
    std::atomic<int64_t> done{0};
    std::atomic<bool> taken{false};
  };
  struct Job {
    int64_t phases, chains, tasks, threads;
    const FunctionRef<void(int64_t, int64_t, int64_t)>* body;
  };

  void prepare(const Job& job) {
    const int64_t claims = job.chains * job.tasks;
    if (claims > claims_size_) claims_.reset(new Claim[size_t(claims)]), claims_size_ = claims;
    if (job.chains > chains_size_)
      chains_.reset(new Chain[size_t(job.chains)]), chains_size_ = job.chains;
    for (int64_t c = 0; c < job.chains; ++c) {
      chains_[c].done.store(0, std::memory_order_relaxed);
      chains_[c].taken.store(false, std::memory_order_relaxed);
    }
    for (int64_t t = 0; t < claims; ++t) claims_[t].phase.store(0, std::memory_order_relaxed);
  }

  // Thread k of a job: chains that nobody has taken, then those that are not done.
  void take_part(const Job& job, int64_t k) {
    const int64_t home = k * job.chains / job.threads;
    const int64_t share = std::max<int64_t>(1, job.threads / job.chains);  // threads of a chain
    const int64_t first = k % share * job.tasks / share;
    for (int64_t i = 0, c = home; i < job.chains; ++i, c = c + 1 == job.chains ? 0 : c + 1)
      if (!chains_[c].taken.exchange(true, std::memory_order_relaxed)) follow(job, c, first);
    // beside the chain's own thread
    for (int64_t i = 0, c = home; i < job.chains; ++i, c = c + 1 == job.chains ? 0 : c + 1)
      follow(job, c, c == home && share > 1 ? first : job.tasks / 2);
  }

  // A thread that comes late begins with the phase under way. Nobody waits for a thread that has
  // not taken a task.
  void follow(const Job& job, int64_t c, int64_t first) {
    Chain& chain = chains_[c];
    Claim* claims = claims_.get() + c * job.tasks;
    for (int64_t p = chain.done.load(std::memory_order_acquire) / job.tasks; p < job.phases; ++p) {
      for (int64_t k = 0, t = first; k < job.tasks; ++k, t = t + 1 == job.tasks ? 0 : t + 1) {
        int64_t expected = p;
        if (claims[t].phase.load(std::memory_order_relaxed) != p ||
            !claims[t].phase.compare_exchange_strong(expected, p + 1, std::memory_order_relaxed))
          continue;
        (*job.body)(p, c, t);
        chain.done.fetch_add(1, std::memory_order_acq_rel);
      }
      wait_for(chain, (p + 1) * job.tasks);
    }
  }

  static void wait_for(const Chain& chain, int64_t count) {
    auto there = [&] { return chain.done.load(std::memory_order_acquire) >= count; };
    for (int k = 0; k < kSpins; ++k) {
      if (there()) return;
      relax();
    }
    // the thread we wait for may need this core
    for (int k = 0; k < kYields; ++k) {
      if (there()) return;
      std::this_thread::yield();
    }
    while (!there()) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }

  static constexpr int kSpins = 400, kYields = 200;
  std::unique_ptr<Claim[]> claims_;
  std::unique_ptr<Chain[]> chains_;
  int64_t claims_size_ = 0, chains_size_ = 0;
};

}  // namespace onnxtrain::kernels
