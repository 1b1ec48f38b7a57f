// Gradient (ai.onnx.preview.training): replaced by ordinary nodes before anything runs; the record
// only gives the types of its outputs.
#include "op/op.hpp"

namespace onnxtrain::ops {

namespace {
void gradient_shape(ShapeCtx& c) {
  int xs = int(c.node().strings("xs").size());
  for (int k = 0; k < c.outputs() && k < xs; ++k) c.set(k, c.dtype(k), c.shape(k));
}
}  // namespace

void register_gradient(OpTable& t) {
  t.add({.name = "Gradient",
         .domain = std::string(kTrainingDomain),
         .shape = gradient_shape,
         .no_grad = "an unexpanded Gradient node"});
}

}  // namespace onnxtrain::ops
