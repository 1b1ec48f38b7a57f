// A graph that came from a file, back into a file: its message, with the tensors of now.
#pragma once
#include <string>
#include <unordered_set>

#include "onnx/write/writer.hpp"

namespace onnxtrain {

// `g`: what became of `p`. `state`: names of state variables.
void copy_graph(const ModelSource& source, const onnx::GraphProto& p, const Graph& g,
                const std::unordered_set<std::string>& state, GraphOut& out);

}  // namespace onnxtrain
