// Runs a node at once on constant inputs.
#pragma once
#include "op/op.hpp"

namespace onnxtrain {

// The node's results; `out`: the types its shape function gave. A model error when no
// implementation takes these types.
std::vector<Tensor> run_node_now(const Node& n, const Op& op, const std::vector<TensorType>& in,
                                 const std::vector<const Tensor*>& values,
                                 const std::vector<TensorType>& out, ThreadPool& pool);

// Bytes of text that a node can make of its constant inputs at most; 0 when it makes none.
int64_t text_to_fold(const std::vector<const Tensor*>& values, const std::vector<TensorType>& out);

// Makes the outputs of node `n` of `g` constants if its inputs are constants (or it reads types
// only), it is deterministic and the results are small; the node itself is then not needed any
// more.
bool fold_node(Graph& g, const Node& n, const OpTable& table, int64_t max_bytes = int64_t(1) << 16);

}  // namespace onnxtrain
