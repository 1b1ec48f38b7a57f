// How a training section falls into parts that blocks of rows compute: found out on a batch of a
// size that occurs nowhere else in the model.
#pragma once
#include "distributed/split.hpp"
#include "engine/program.hpp"

namespace onnxtrain {

// arrays: one per graph input; their sizes but for the number of rows are those of every batch.
// is_rows: by input, whether it holds rows.
SplitStep split_into_blocks(const Graph& g, const SplitStep::Updates& updates,
                            const ArrayRef* arrays, ThreadPool& pool, std::vector<char>& is_rows,
                            const BlockOptions& options);

// The numbers `values` (SplitStep::given) of a batch of so many rows.
std::vector<Tensor> numbers_of_batch(const Graph& g, const SplitStep::Updates& updates,
                                     const ArrayRef* arrays, const std::vector<char>& is_rows,
                                     int64_t rows, const std::vector<ValueId>& values,
                                     ThreadPool& pool);

// OT5011: there is nothing to cut.
[[noreturn]] void no_open_rows();

// By input: has it an open number of rows?
std::vector<char> row_inputs(const Graph& g);

}  // namespace onnxtrain
