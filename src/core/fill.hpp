// Memory that is filled for the first time: its pages cost more than the bytes that go into them,
// so pages come in bulk and several threads share the work.
#pragma once
#include <cstddef>
#include <functional>
#include <vector>

namespace onnxtrain {

class ThreadPool;

struct Fill {
  void* to;
  size_t bytes;
  // Writes [at, at + n) of the block to `out`; called from any thread.
  std::function<void(size_t at, void* out, size_t n)> write;
};

// All of them. An error of a write is thrown here.
void fill_all(const std::vector<Fill>& fills, ThreadPool& pool);
// The same with threads of its own when there is enough to do.
void fill_all(const std::vector<Fill>& fills);

}  // namespace onnxtrain
