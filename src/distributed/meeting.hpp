// Blocks of a batch that need sums over all blocks before they are done: those of this process run
// in turns, each up to the place where it needs such a sum.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "core/block_exchange.hpp"
#include "distributed/block_sum.hpp"

namespace onnxtrain {

class BlockMeeting {
 public:
  BlockMeeting(int blocks, Communicator* communicator);
  ~BlockMeeting();

  // body(block) for every block of `here`; BlockExchange::current() is set in it. Blocks that are
  // empty give nothing to the sums, but a process without any rows runs one of them all the same,
  // so that it comes to every sum. Only one body runs at a time; sums are made by the calling
  // thread.
  using Body = std::function<void(int block)>;
  void run(const std::vector<int>& here, const std::vector<char>& empty, const Body& body,
           ThreadPool& pool);

 private:
  struct Turn;
  struct Alone;
  void add(ThreadPool& pool);
  BlockSum& sum_of(size_t n);

  int blocks_;
  Communicator* comm_;
  std::vector<std::unique_ptr<Turn>> turns_;
  std::vector<std::unique_ptr<BlockSum>> sums_;  // by length
  std::vector<size_t> lengths_;
  // What waits to be added: by block of this process.
  struct Waiting {
    int block;
    double* data;
    size_t n;
    uint64_t place;
    std::vector<double> numbers;  // data and the place
  };
  std::vector<Waiting> waiting_;
  std::vector<const void*> part_;
  const std::vector<char>* empty_ = nullptr;
};

}  // namespace onnxtrain
