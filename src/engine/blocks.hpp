// A training section whose batch is cut into blocks of rows: every block is computed by itself,
// gradients are added over blocks and processes in one fixed order, then comes the update, once.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "distributed/block_sum.hpp"
#include "distributed/meeting.hpp"
#include "distributed/split.hpp"
#include "engine/program.hpp"
#include "engine/sharded_update.hpp"

namespace onnxtrain {

// Which rows of the batch each block has, and which blocks are computed here.
struct BatchRows {
  std::vector<int64_t> first;  // by block, and the end
  int begin = 0, end = 0;      // blocks of this process
  std::vector<int> axes = {};  // by input of the training: row_axes
  int64_t total() const { return first.back(); }
  int64_t rows(int block) const { return first[size_t(block) + 1] - first[size_t(block)]; }
  int64_t own() const { return first[size_t(end)] - first[size_t(begin)]; }
};

// Cuts the rows that every process has (in the order of ranks) into `blocks` blocks. As long as
// rank r has rows [r*N/R, (r+1)*N/R) the blocks do not depend on the number of ranks R.
void cut_rows(const std::vector<int64_t>& rows_of_rank, int rank, int blocks, BatchRows& b);

class BlockStep {
 public:
  struct Parts {
    Graph graph;  // of the section, with its inputs and outputs
    SplitStep::Updates updates;
    int loss = -1;
    std::shared_ptr<State> state;
    std::shared_ptr<ThreadPool> pool;
    ProgramOptions options;
    Communicator* communicator = nullptr;
    BlockOptions how = {};
    std::set<std::string> elsewhere = {};  // state variables that others read too
    std::vector<int> axes = {};            // by graph input: the dimension that counts rows, or -1
  };
  explicit BlockStep(Parts parts);
  ~BlockStep();

  // arrays: this process's rows, one per graph input. Makes the programs when it is called first.
  void run(const ArrayRef* arrays, const BatchRows& rows, uint64_t seed, uint64_t step,
           Guard* guard);
  double loss() const { return loss_; }
  bool tripped() const { return tripped_; }  // the loss or a gradient is not finite
  // Where that comes from in this process's rows; empty: not from here.
  NotFiniteValue trace(uint64_t seed, uint64_t step);
  Value output(size_t k) const;  // of the last step; rows: of this process
  // Where optimizer state is shared out (BlockOptions::shard), from the first step on; else null.
  ShardedUpdate* shards() const { return shards_.get(); }
  PlannedMemory memory() const;
  std::vector<const Plan*> plans() const;
  void set_observer(StepObserver* observer);

 private:
  struct Part;     // a program that runs per block, or once
  struct Overlap;  // hands gradients out while their block runs
  void prepare(const ArrayRef* arrays);
  void prepare_sums();
  void prepare_update(const ProgramOptions& options);
  void run_update(Guard* guard);
  void bind(Part& p, int block);
  void bind_sum(Part& p, size_t input);
  void find_source(Part& p, size_t input);
  void add_up(Part& p, BlockSum& sums);
  void check_rows() const;
  void run_block(Part& p, int block);
  void run_together();
  Part& part_of(int block);
  std::vector<Part*> parts() const;
  const Tensor& lone_row(const ArrayRef& like, size_t input);
  void gather_rows(const Part& p, int block);

  Parts p_;
  std::unique_ptr<SplitStep> split_;
  std::unique_ptr<Part> count_, block_, update_;
  // Blocks that meet: each has a program of its own, block_ is the first's.
  std::unique_ptr<BlockMeeting> meeting_;
  std::vector<std::unique_ptr<Part>> others_;
  std::vector<int> here_;          // blocks that run in this process
  int64_t numbers_rows_ = -1;      // numbers_ are those of a batch of so many rows
  std::vector<Tensor> numbers_;    // SplitStep::given
  std::vector<Tensor> lone_rows_;  // by graph input: what a process without rows runs on
  std::unique_ptr<BlockSum> counts_, sums_;
  std::unique_ptr<ShardedUpdate> shards_;
  std::unique_ptr<Overlap> overlap_;
  StepObserver* observer_ = nullptr;
  std::vector<char> empty_;          // by block
  std::vector<Tensor> row_outputs_;  // those of the last step that are rows of this process
  std::vector<char> gathered_;       // by row output: there are some
  Shape row_shape_;
  const BatchRows* rows_ = nullptr;
  BatchRows last_rows_;
  std::vector<ArrayRef> arrays_;
  uint64_t seed_ = 0, step_ = 0;
  int loss_sum_ = -1;
  double loss_ = 0;
  bool tripped_ = false;
};

}  // namespace onnxtrain
