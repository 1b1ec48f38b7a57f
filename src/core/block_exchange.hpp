// Sums over all blocks of a batch that a kernel needs in the middle of a block: statistics of the
// whole batch.
#pragma once
#include <cstddef>
#include <cstdint>

namespace onnxtrain {

class BlockExchange {
 public:
  virtual ~BlockExchange() = default;
  // data: n numbers of this block; afterwards their sums over all blocks of all processes, the same
  // bits everywhere. Every block comes to the same places in the same order.
  virtual void sum(double* data, size_t n, uint64_t place) = 0;
  // That of the block that this thread computes; null: a batch that is not cut.
  static BlockExchange* current();
};

// Set around the run of a block.
class BlockExchangeScope {
 public:
  explicit BlockExchangeScope(BlockExchange* exchange);
  ~BlockExchangeScope();
  BlockExchangeScope(const BlockExchangeScope&) = delete;
  BlockExchangeScope& operator=(const BlockExchangeScope&) = delete;

 private:
  BlockExchange* before_;
};

}  // namespace onnxtrain
