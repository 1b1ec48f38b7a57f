// Types of the results of If, Loop and Scan, from the types of what goes in and is captured: so
// that what comes after them can be planned like the rest.
#pragma once
#include "op/op.hpp"

namespace onnxtrain {

// Sets the types of the node's outputs where they follow; others stay as they are. Nothing happens
// for a node of another kind. lengths: of what a Loop stacks, too, where only a known number of
// iterations ends it. A graph that runs does without: a loop asks for memory as it goes.
void infer_subgraph_results(Graph& g, const Node& n, const OpTable& table, bool lengths = false);

// Puts copies in the place of the bodies of If, Loop and Scan, with the types and constants that
// follow from what goes in. Values keep their numbers. For graphs that are looked at, not run.
void type_bodies(Graph& g, const OpTable& table);

}  // namespace onnxtrain
