// Tensors of every process in every process: results of batches that processes share out.
#pragma once
#include <vector>

#include "core/tensor.hpp"
#include "distributed/communicator.hpp"

namespace onnxtrain {

// By rank, what each gave; they may differ in number, type and shape. More than `at_once` bytes go
// in pieces of that size.
std::vector<std::vector<Tensor>> gather_tensors(Communicator& c, const std::vector<Tensor>& mine,
                                                size_t at_once = Communicator::kLargest);

}  // namespace onnxtrain
