// Scratch memory for tasks that run at the same time.
#pragma once
#include <atomic>
#include <thread>
#include <vector>

namespace onnxtrain::kernels {

// Hands out one of a few scratch slots to each running task. Which one never matters for the
// result.
class Slots {
 public:
  explicit Slots(int count) : free_(size_t(count)) {
    for (auto& f : free_) f.store(true);
  }
  int count() const { return int(free_.size()); }
  int take() {
    for (;;) {
      for (size_t k = 0; k < free_.size(); ++k) {
        bool expected = true;
        if (free_[k].compare_exchange_strong(expected, false, std::memory_order_acquire))
          return int(k);
      }
      std::this_thread::yield();
    }
  }
  void give_back(int k) { free_[size_t(k)].store(true, std::memory_order_release); }

 private:
  std::vector<std::atomic<bool>> free_;
};

}  // namespace onnxtrain::kernels
