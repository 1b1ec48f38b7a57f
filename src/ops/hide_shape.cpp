// HideShape (test domain): passes a tensor through as a run-time value, so that the planner cannot
// know its shape. Lets every operator test run its case through the dynamic path as well.
#include "op/op.hpp"

namespace onnxtrain::ops {

namespace {
void run(ValueCtx& c) { c.out(0, *c.in(0)); }
}  // namespace

void register_hide_shape(OpTable& t) {
  t.add({.name = "HideShape", .domain = "ai.onnxtrain.test", .run_values = run, .no_grad = "test helper"});
}

}  // namespace onnxtrain::ops
