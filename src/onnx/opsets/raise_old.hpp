// Files before opset 7, where broadcasting was an attribute: libonnx's converter refuses them when
// a size is open, and lacks some of the operators.
#pragma once
#include <onnx/onnx_pb.h>

#include "graph/graph.hpp"

namespace onnxtrain {

// Rewrites a graph of opset `from` (1 to 6) in the words of opset 7; `types` is the same graph as
// it was read. false: something in it cannot be said so, or needs a rank that is not known.
bool spell_as_opset_7(onnx::GraphProto& g, const Graph& types, int from);

}  // namespace onnxtrain
