// What a Training keeps of one training section. Internal to engine/.
#pragma once
#include "core/memory.hpp"
#include "engine/blocks.hpp"
#include "engine/training.hpp"

namespace onnxtrain {

// What a process says instead of a number of rows when it collects the optimizer's state.
inline constexpr int64_t kGathers = -7;

// What every process says before it does something with the others: a number of rows, or kGathers.
struct Training::Told {
  int64_t rows = -1, step = 0, wish = 0;
};

struct Training::Algorithm {
  std::unique_ptr<Program> program;
  std::vector<ValueDef> inputs;
  std::vector<std::string> outputs;
  std::vector<char> is_state;  // by output
  int loss = -1;               // index among outputs
  std::vector<Value> fed;      // reused from step to step
  std::vector<size_t> slots;   // by input: index among Training::slots
  std::vector<ArrayRef> arrays;
  std::vector<std::vector<TensorType>> checked;  // arrays of these types fit the inputs
  // where the outputs of the last step are: in the plan's memory, or here
  const Plan* last_plan = nullptr;
  std::vector<Value> last_values;
  SplitStep::Updates updates;
  std::unique_ptr<BlockStep> blocks;  // null: the batch is not cut
  Populating state_pages;             // of variables that begin as zero
};

}  // namespace onnxtrain
