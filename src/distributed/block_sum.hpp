// Sums over the blocks of a batch, in one order: a binary tree over the blocks. Who computes which
// block changes nothing in the result, not even a bit.
#pragma once
#include <functional>
#include <vector>

#include "core/memory.hpp"
#include "distributed/communicator.hpp"
#include "op/op.hpp"

namespace onnxtrain {

class BlockSum {
 public:
  // parts: what is added, one tensor each. communicator: null for one process. The blocks of a rank
  // are neighbours: rank r has r*blocks/size and those after it.
  BlockSum(std::vector<TensorType> parts, int blocks, Communicator* communicator);

  // compute(block) runs a block and says where its parts are; blocks that are empty are passed
  // over. The result is the same in every process.
  using Compute = std::function<const std::vector<const void*>&(int block)>;
  void run(const std::vector<char>& empty, const Compute& compute, ThreadPool& pool);
  void* result(size_t part) const;
  size_t bytes() const { return bytes_; }  // of the sums
  const std::vector<TensorType>& parts() const { return parts_; }

  static int middle(int from, int to) { return from + (to - from + 1) / 2; }

 private:
  struct Range {
    int from, to;
  };
  bool is_empty(const Range& r) const;
  void find_subtrees(Range tree, Range own, std::vector<Range>& found) const;
  bool sum_local(Range r, size_t buffer, const Compute& compute, ThreadPool& pool);
  void add_parts(char* to, const std::vector<const void*>& from, bool copy, ThreadPool& pool) const;
  void add_bytes(char* to, const char* from, size_t begin, size_t end, ThreadPool& pool) const;
  void sum_over_ranks(ThreadPool& pool);
  void sum_bucket(size_t begin, size_t end, ThreadPool& pool);
  char* sum_tree(Range r, size_t begin, size_t end, ThreadPool& pool);
  char* buffer(size_t k);

  std::vector<TensorType> parts_;
  std::vector<size_t> offsets_;
  size_t bytes_ = 0, bucket_ = 0;
  int blocks_;
  Communicator* comm_;
  std::vector<std::vector<Range>> subtrees_;  // by rank: the largest parts of the tree it has alone
  size_t most_ = 1;
  std::vector<std::shared_ptr<void>> buffers_;   // the subtrees of this rank, then partial sums
  std::vector<std::shared_ptr<void>> received_;  // by subtree: from every rank, one bucket
  std::vector<size_t> chunks_, places_;
  const std::vector<char>* empty_ = nullptr;
};

}  // namespace onnxtrain
