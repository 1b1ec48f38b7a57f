// Sums over the blocks of a batch, in one order: a binary tree over the blocks. Who computes which
// block changes nothing in the result, not even a bit. Between processes the sums are exchanged in
// buckets, each as soon as all that it holds is there: while the last block is still computed.
#pragma once
#include <functional>
#include <vector>

#include "core/memory.hpp"
#include "distributed/communicator.hpp"
#include "op/op.hpp"

namespace onnxtrain {

// Parts of which every process gets the sums of some elements only: pieces() says which.
struct SharedSums {
  size_t from = 0, to = 0;  // parts
  bool everywhere = false;  // all processes get all sums all the same
};

class BlockSum {
 public:
  // parts: what is added, one tensor each, in the order in which they become known. communicator:
  // null for one process. The blocks of a rank are neighbours: rank r has r*blocks/size and those
  // after it. narrow_from: float32 of this part and those after it is bfloat16 between processes.
  static constexpr size_t kNever = ~size_t(0);
  using Shared = SharedSums;
  BlockSum(std::vector<TensorType> parts, int blocks, Communicator* communicator,
           size_t narrow_from = kNever, Shared shared = {});
  // Which elements of the shared parts belong to which process, in the order of the parts.
  struct Piece {
    size_t part;
    int rank;
    int64_t from, to;  // elements
  };
  std::vector<Piece> pieces() const;

  // compute(block) runs a block and says where its parts are; blocks that are empty are passed
  // over. The result is the same in every process.
  using Compute = std::function<const std::vector<const void*>&(int block)>;
  void run(const std::vector<char>& empty, const Compute& compute, ThreadPool& pool);

  // While compute() of the last block of this process runs: a part of it is done, and stays there
  // until the block is done. Other buckets go on meanwhile with progress().
  bool is_last(int block) const { return block == last_; }
  void ready(size_t part, const void* data);
  void progress();

  void* result(size_t part) const;
  const std::vector<TensorType>& parts() const { return here_.parts; }

  static int middle(int from, int to) { return from + (to - from + 1) / 2; }

 private:
  struct Range {
    int from, to;
  };
  // Where the parts are in a buffer.
  struct Layout {
    std::vector<TensorType> parts;
    std::vector<size_t> offsets;
    size_t bytes = 0;
    void add(const TensorType& t);
    size_t end_of(size_t part) const;  // of its elements
  };
  // A step of the sum that waits for the last block: to += from, or a copy of it.
  struct Late {
    size_t to;
    int from;  // a buffer; -1: the block
    bool copy;
  };
  // A bucket under way: parts of it go to the ranks that add them, then the sums come back.
  struct Flight {
    size_t begin = 0, end = 0;
    bool collects = false;
    bool shared = false;  // the sums stay where they were made
    std::vector<Communicator::Handle> handles;
    std::vector<size_t> chunks, places;
    std::vector<std::shared_ptr<void>> received;  // by subtree: from every rank
  };
  bool is_empty(const Range& r) const;
  void find_subtrees(Range tree, Range own, std::vector<Range>& found) const;
  bool sum_local(Range r, size_t buffer, const Compute& compute, ThreadPool& pool);
  void add_leaf(int block, size_t at, bool copy, const Compute& compute, ThreadPool& pool);
  void add_part(size_t part, char* to, const void* from, bool copy, ThreadPool& pool) const;
  static void add_bytes(const Layout& l, char* to, const char* from, size_t begin, size_t end,
                        ThreadPool& pool);
  void narrow(size_t part);
  void widen(size_t begin, size_t end);
  char* sent(size_t k) { return narrow_ ? static_cast<char*>(narrowed_[k].get()) : buffer(k); }
  void start_buckets();
  size_t bucket_end(size_t begin) const;
  void cut(size_t begin, size_t end, std::vector<size_t>& chunks) const;
  void start(Flight& f);
  bool is_done(Flight& f);
  void collect(Flight& f);
  char* sum_tree(const Flight& f, Range r, size_t begin, size_t end);
  char* buffer(size_t k);

  Layout here_, between_;  // in this process, between processes
  size_t bucket_ = 0;
  bool narrow_ = false;
  int blocks_;
  Communicator* comm_;
  Shared shared_;
  size_t shared_begin_ = 0, shared_end_ = 0;  // bytes
  std::vector<std::vector<Range>> subtrees_;  // by rank: the largest parts of the tree it has alone
  size_t most_ = 1;
  std::vector<std::shared_ptr<void>> buffers_;   // the subtrees of this rank, then partial sums
  std::vector<std::shared_ptr<void>> narrowed_;  // the subtrees, as they are between processes
  const std::vector<char>* empty_ = nullptr;
  ThreadPool* pool_ = nullptr;
  // Of a run.
  int last_ = -1;         // the last block of this process that has rows
  bool reached_ = false;  // sums from here on wait for it
  std::vector<Late> late_;
  std::vector<char> ready_;            // by part
  size_t ready_parts_ = 0;             // the first so many are
  size_t started_ = 0, finished_ = 0;  // bytes: buckets are begun and ended in order
  std::vector<Flight> flights_;        // a ring
  size_t oldest_ = 0, under_way_ = 0;
};

}  // namespace onnxtrain
