// DeferredGradient: runs its body once, specialised to the shapes it gets. Made by the reverse walk
// for gradients that need shapes which are not known before the run.
#include "ops/common/values.hpp"

namespace onnxtrain::ops {

namespace {

void run(ValueCtx& c) {
  std::vector<Value> in;
  for (int k = 0; k < c.inputs(); ++k) in.push_back(*c.in(k));
  std::vector<Value> out = c.run_graph("body", std::move(in));
  for (int k = 0; k < c.outputs(); ++k) c.out(k, std::move(out[size_t(k)]));
}

}  // namespace

void register_deferred_gradient(OpTable& t) {
  t.add({.name = "DeferredGradient",
         .domain = std::string(kOwnDomain),
         .run_values = run,
         .no_grad = "its gradient is made by the reverse walk"});
}

}  // namespace onnxtrain::ops
