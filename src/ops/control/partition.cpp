// Partition: neighbouring nodes that another runtime runs, as one graph (passes/partition.cpp).
#include "op/foreign.hpp"
#include "ops/control/body.hpp"

namespace onnxtrain::ops {

namespace {

void run(ValueCtx& c) { run_foreign_graph(body_of(c.node(), "body"), c); }

}  // namespace

void register_partition(OpTable& t) {
  t.add({.name = "Partition",
         .domain = std::string(kOwnDomain),
         .run_values = run,
         .no_grad = "another runtime runs it"});
}

}  // namespace onnxtrain::ops
