// Many short parallel phases, one after the other, inside one job of the pool: cheaper than a job
// each. Threads stay with the same task numbers from phase to phase, so that what a task reads
// every time stays in the caches of one core.
#pragma once
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

#include "core/threads.hpp"

namespace onnxtrain::kernels {

class Phases {
 public:
  explicit Phases(int64_t tasks) : tasks_(tasks), claimed_(new Claim[size_t(tasks)]) {}

  // Calls body(phase, task) for every phase of [0, phases) and task; a phase begins when all tasks
  // of the one before have ended. Who runs a task never matters for the result.
  void run(ThreadPool& pool, int64_t phases, FunctionRef<void(int64_t, int64_t)> body) {
    int64_t threads = pool.threads() < tasks_ ? pool.threads() : tasks_;
    if (threads <= 1) {
      for (int64_t p = 0; p < phases; ++p)
        for (int64_t t = 0; t < tasks_; ++t) body(p, t);
      return;
    }
    done_.store(0, std::memory_order_relaxed);
    for (int64_t t = 0; t < tasks_; ++t) claimed_[t].phase.store(0, std::memory_order_relaxed);
    pool.run(threads, [&](int64_t k) { take_part(k * tasks_ / threads, phases, body); });
  }

 private:
  struct alignas(64) Claim {
    std::atomic<int64_t> phase{0};  // the next phase this task has to run in
  };

  // A thread that comes late begins with the phase under way. Nobody waits for a thread that has
  // not taken a task.
  void take_part(int64_t first, int64_t phases, FunctionRef<void(int64_t, int64_t)> body) {
    int64_t p = done_.load(std::memory_order_acquire) / tasks_;
    for (; p < phases; ++p) {
      for (int64_t k = 0, t = first; k < tasks_; ++k, t = t + 1 == tasks_ ? 0 : t + 1) {
        int64_t expected = p;
        if (claimed_[t].phase.load(std::memory_order_relaxed) != p ||
            !claimed_[t].phase.compare_exchange_strong(expected, p + 1, std::memory_order_relaxed))
          continue;
        body(p, t);
        done_.fetch_add(1, std::memory_order_acq_rel);
      }
      wait_for((p + 1) * tasks_);
    }
  }

  void wait_for(int64_t count) const {
    auto there = [&] { return done_.load(std::memory_order_acquire) >= count; };
    for (int k = 0; k < kSpins; ++k) {
      if (there()) return;
#if defined(__x86_64__) || defined(__i386__)
      __builtin_ia32_pause();
#endif
    }
    // the thread we wait for may need this core
    for (int k = 0; k < kYields; ++k) {
      if (there()) return;
      std::this_thread::yield();
    }
    while (!there()) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }

  static constexpr int kSpins = 2000, kYields = 200;
  int64_t tasks_;
  std::unique_ptr<Claim[]> claimed_;
  alignas(64) std::atomic<int64_t> done_{0};
};

}  // namespace onnxtrain::kernels
