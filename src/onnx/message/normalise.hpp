// What files of other writers need before anything reads them: dimensions that are no sizes become
// unknown, and nodes are put into an order in which they can run. Internal to onnx/.
#pragma once
#include "onnx/onnx_pb.h"

namespace onnxtrain {

// Dimensions below 1 in types (some writers mean "unknown" by -1 or 0) are cleared, in every graph,
// body and function. Nodes that stand before what they read are sorted; the order is stable, and
// names that subgraphs capture count. Cycles and missing names are left for the checker.
void normalise(onnx::ModelProto& m);

}  // namespace onnxtrain
