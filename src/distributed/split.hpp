// A training step in parts: what every block of rows computes by itself, and what follows from the
// sums over all blocks.
#pragma once
#include <utility>
#include <vector>

#include "distributed/block_options.hpp"
#include "distributed/rows.hpp"

namespace onnxtrain {

// Inputs of a block beside the data: scalars of double.
inline constexpr const char* kShareInput = "onnxtrain.share";  // rows of the block / of the batch
inline constexpr const char* kOnceInput = "onnxtrain.once";    // 1 in one block, 0 in the others
inline constexpr const char* kWholeInput = "onnxtrain.whole";  // rows of the batch / of the block
// For rows of a neighbour: true at the place of this block, one for each; the numbers of the next
// and the last block that have rows.
inline constexpr const char* kHereInput = "onnxtrain.here";
inline constexpr const char* kNextInput = "onnxtrain.next";
inline constexpr const char* kBeforeInput = "onnxtrain.before";
// Beside them: numbers that follow from the size of the whole batch, by the names of their values.
inline constexpr const char* kNumberInput = "onnxtrain.number.";
// On random nodes of a block: the axis along which rows lie, and what of it changes more slowly
// than they do (core/random_rows.hpp).
inline constexpr const char* kRowAxis = "row_axis";
inline constexpr const char* kRowOuter = "row_outer";

struct SplitStep {
  using Updates = std::vector<std::pair<ValueId, std::string>>;
  Graph count;   // outputs: sums that the blocks need; no nodes when there are none
  Graph block;   // inputs: count's outputs, too, by the same names; outputs: sums, then rows
  Graph update;  // inputs: sums and counts by name; outputs: those of the step that are no rows
  Updates updates;
  std::vector<std::string> count_names, sum_names;  // in the order of the outputs
  size_t forward_sums = 0;                          // the first so many sums are no gradients
  struct Output {  // of the step: an output of `update`, or rows of the block
    int update = -1, block = -1, axis = 0;
    int64_t outer = 1;
    std::string refused;
    std::string state = {};  // the new value of this variable, which processes share out
  };
  std::vector<Output> outputs;
  bool meets = false;          // blocks add up statistics while they run (BlockMeeting)
  std::string lone_row;        // a node that needs more than one row for its statistics
  std::vector<ValueId> given;  // kNumberInput of these values: of the graph that was split
};

// Numbers that follow from the size of the batch: times kWholeInput, times kShareInput, or given.
struct BatchNumber {
  enum How : uint8_t { kGrows, kShrinks, kGiven };
  ValueId value;
  How how;
};

// `g`: the general graph of a step with its inputs and outputs; `t`: the same specialised, with the
// values of `g` under their numbers, which `a` is about. Throws OT5010 when something that is
// needed cannot be had from blocks. blocks: of a batch.
SplitStep split_step(const Graph& g, const SplitStep::Updates& updates, const Graph& t,
                     const RowAnalysis& a, const std::vector<BatchNumber>& numbers,
                     const BlockOptions& options, int blocks);

}  // namespace onnxtrain
