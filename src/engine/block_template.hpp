// How a training section falls into parts that blocks of rows compute: found out on a batch of a
// size that occurs nowhere else in the model.
#pragma once
#include "distributed/split.hpp"
#include "engine/program.hpp"

namespace onnxtrain {

// arrays: one per graph input; their sizes but for the number of rows are those of every batch.
// axes: by input, the dimension that counts rows; -1: it has none. rows: of this batch.
SplitStep split_into_blocks(const Graph& g, const SplitStep::Updates& updates,
                            const ArrayRef* arrays, ThreadPool& pool, const std::vector<int>& axes,
                            const BlockOptions& options, int blocks, int64_t rows);

// The numbers `values` (SplitStep::given) of a batch of so many rows.
std::vector<Tensor> numbers_of_batch(const Graph& g, const SplitStep::Updates& updates,
                                     const ArrayRef* arrays, const std::vector<int>& axes,
                                     int64_t rows, const std::vector<ValueId>& values,
                                     ThreadPool& pool);

// OT5011: there is nothing to cut.
[[noreturn]] void no_open_rows();

}  // namespace onnxtrain
