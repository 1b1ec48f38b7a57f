// The pass that joins neighbouring nodes of another runtime.
#include <gtest/gtest.h>

#include "op/foreign.hpp"
#include "passes/passes.hpp"

namespace onnxtrain {
namespace {

ValueId foreign(Graph& g, ValueId in, const char* op = "Twice", int kind = kForeignVersion) {
  Node n;
  n.domain = "elsewhere";
  n.op = op;
  n.version = 1 + kind;
  n.inputs = {in};
  return g.add_node(std::move(n), 1)[0];
}

TEST(PassPartition, WhatIsReadOutsideComesOut) {
  Graph g;
  const ValueId x = g.add_value("x");
  g.inputs = {x};
  const ValueId a = foreign(g, x), b = foreign(g, a);
  Node neg;
  neg.op = "Neg";
  neg.version = 13;
  neg.inputs = {a};
  const ValueId c = g.add_node(std::move(neg), 1)[0];
  const ValueId d = foreign(g, c), e = foreign(g, d, "Back", kForeignVersion | kForeignGradient);
  g.outputs = {b, e};
  pass_partition(g, PassContext{{}, all_ops()});
  ASSERT_EQ(g.nodes.size(), 4u);
  EXPECT_TRUE(g.nodes[0].is("Partition", kOwnDomain));
  EXPECT_EQ(g.nodes[0].inputs, (std::vector<ValueId>{x}));
  EXPECT_EQ(g.nodes[0].outputs, (std::vector<ValueId>{a, b}));
  EXPECT_EQ(g.nodes[0].graph("body")->nodes.size(), 2u);
  EXPECT_EQ(g.nodes[2].op, "Twice") << "alone it stays";
  EXPECT_EQ(g.damage(), "");
}

// What a node is stands in its version, not in the name that somebody gave to an operator.
TEST(PassPartition, AnOperatorCalledLikeAGradientIsNone) {
  Graph g;
  const ValueId x = g.add_value("x");
  g.inputs = {x};
  const ValueId a = foreign(g, x, "Smooth_grad"), b = foreign(g, a);
  g.outputs = {b};
  pass_partition(g, PassContext{{}, all_ops()});
  ASSERT_EQ(g.nodes.size(), 1u);
  EXPECT_EQ(g.nodes[0].graph("body")->nodes.size(), 2u);
}

}  // namespace
}  // namespace onnxtrain
