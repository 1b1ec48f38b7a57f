// Vectors beside tensors whose length follows from sizes of the data (tables of kernels, lists of
// positions): counted before they are taken, against the run's budget and the process's limit.
#pragma once
#include <cstddef>
#include <limits>
#include <vector>

namespace onnxtrain {

// Counted memory with a note of who counted it in front; OT1401 when it does not fit.
void* allocate_counted(size_t bytes);
void free_counted(void* p) noexcept;

template <class T>
struct CountedAllocator {
  using value_type = T;
  CountedAllocator() = default;
  template <class U>
  CountedAllocator(const CountedAllocator<U>&) {}  // NOLINT(google-explicit-constructor)
  T* allocate(size_t n) {
    constexpr size_t kMost = std::numeric_limits<size_t>::max() / 2;
    return static_cast<T*>(allocate_counted(n > kMost / sizeof(T) ? kMost : n * sizeof(T)));
  }
  void deallocate(T* p, size_t) noexcept { free_counted(p); }
  template <class U>
  bool operator==(const CountedAllocator<U>&) const {
    return true;
  }
};

template <class T>
using CountedVector = std::vector<T, CountedAllocator<T>>;

}  // namespace onnxtrain
