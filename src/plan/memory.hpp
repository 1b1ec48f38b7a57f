// Static memory planning: a pure function from lifetimes to offsets.
#pragma once
#include <cstddef>
#include <vector>

namespace onnxtrain {

struct Lifetime {
  int begin, end;  // first and last step that touches it, inclusive
  size_t bytes;
};

struct MemoryLayout {
  std::vector<size_t> offsets;  // one per lifetime, 64-byte aligned
  size_t total = 0;             // bytes of the arena
  size_t peak = 0;              // largest sum of bytes alive at one step: no plan can need less
};

// Largest first, each at the lowest offset where no overlapping lifetime lies.
MemoryLayout plan_memory(const std::vector<Lifetime>& lifetimes);

}  // namespace onnxtrain
