// What a graph proves of a tensor's shape, without the shapes that the file only declares.
#pragma once
#include "model/model.hpp"
#include "op/op.hpp"

namespace onnxtrain {

// The type of `v` in the main graph. Sizes above 1 that follow from nothing are open: the run finds
// them out.
TypeInfo proven_type(const Model& m, ValueId v, const OpTable& ops);

}  // namespace onnxtrain
