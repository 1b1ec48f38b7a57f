// The parts of a BlockStep: programs that run per block, or once. Internal to engine/.
#pragma once
#include <map>

#include "engine/blocks.hpp"

namespace onnxtrain {

// One program with its inputs: where each comes from.
struct BlockStep::Part {
  // state: that of the step unless given.
  Part(Graph graph, SplitStep::Updates updates, const BlockStep& step, ProgramOptions options,
       const std::shared_ptr<State>& state = nullptr);
  // Runs on `arrays`; outputs are in `out`.
  void run(uint64_t seed, uint64_t step, Guard* guard);
  // Of arrays[k] so many rows along `axis` remain, or a place for one when there are none. What
  // lies apart in memory is copied.
  void take_rows(size_t k, int axis, int64_t skip, int64_t rows);
  Tensor tensor(size_t k) const {
    return Tensor(types[k].dtype, types[k].shape, const_cast<void*>(out[k]), nullptr);
  }

  Program program;
  std::vector<std::string> names;
  std::vector<int> from;  // by input: that of the section; -1: none of them
  // By input: a sum or a number of the batch, looked up once; kept: it stays where it was bound.
  struct Source {
    enum class Kind { kUnknown, kNumber, kSum, kCount, kKept } kind = Kind::kUnknown;
    size_t at = 0;
  };
  std::vector<Source> sources;
  std::vector<ArrayRef> arrays;
  std::vector<Shape> dims;
  std::vector<Tensor> copies;  // by input, of rows that are not its first dimension
  // Of arrays[k]: a number that the block takes; false: it is none.
  bool bind_number(size_t k);
  double share = 1, once = 1, whole = 1;
  std::unique_ptr<bool[]> here;  // by block: it is this one
  int64_t next = 0, before = 0;  // the neighbouring blocks that have rows
  void is_block(int block, const BatchRows& rows);
  uint64_t planned = 0;  // how often a plan was looked for
  std::vector<Value> values;
  std::vector<const void*> out;
  std::vector<TensorType> types;
};

// Gradients of the last block go to the other processes as soon as they are there.
struct BlockStep::Overlap final : StepObserver {
  Overlap(BlockSum& s, const Part& p, size_t n) : sums(s), part(p), count(n) {}
  void before(const Plan& plan, const Step& step) override;
  void after(const Plan& plan, const Step& step) override;
  void look(const Plan& plan);
  BlockSum& sums;
  const Part& part;
  size_t count;
  StepObserver* next = nullptr;
  uint64_t planned = 0;  // of the part, when its plans were looked at
  const Plan* known = nullptr;
  using MadeAt = std::vector<std::vector<size_t>>;  // by step of a plan
  std::map<const Plan*, MadeAt> looked;
  const MadeAt* made_at = nullptr;  // of `known`
};

}  // namespace onnxtrain
