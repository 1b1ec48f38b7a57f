// The pass runner and its list: graph -> graph on a specialised graph.
#pragma once
#include <string>
#include <vector>

#include "op/op.hpp"

namespace onnxtrain {

struct PassOptions {
  std::vector<std::string> skip;
  bool verify = false;
};

struct PassContext {
  const std::vector<ValueId>& keep;  // values that must survive beside the outputs (state updates)
  const OpTable& table;
};

struct PassTime {
  std::string name;
  double seconds;  // without the verification
  int nodes_before, nodes_after;
};

// Runs the pipeline (pipeline.cpp is the list), verifies after each pass when asked, reports times.
std::vector<PassTime> run_passes(Graph& g, const std::vector<ValueId>& keep, const OpTable& table,
                                 const PassOptions& o);

// Before the pipeline, by engine/ (subgraphs.cpp). inline_constant_ifs: true if there was one; the
// graph then needs to be specialised again.
bool inline_constant_ifs(Graph& g);
void absorb_constants(Graph& g);

// Sequences whose elements are known one by one become tensors (known_sequences.cpp); true if there
// was one. Before a step is cut into blocks of rows, by engine/.
bool resolve_sequences(Graph& g);

// Before differentiation, by engine/: chains that spell one operator become that operator.
void recognise_operators(Graph& g, const std::vector<ValueId>& keep);

// The passes, one file each.
void pass_partition(Graph& g, const PassContext& c);  // neighbouring nodes of another runtime
void pass_dead(Graph& g, const PassContext& c);
void pass_identity(Graph& g, const PassContext& c);  // removes Identity and other no-op nodes
void pass_cse(Graph& g, const PassContext& c);
void pass_fold_norm(Graph& g, const PassContext& c);
void pass_layout(Graph& g, const PassContext& c);  // channels last where convolutions gain
void pass_fuse_norm(Graph& g, const PassContext& c);
void pass_fuse_loss(Graph& g, const PassContext& c);
void pass_join_slices(Graph& g, const PassContext& c);
void pass_fuse_matmul(Graph& g, const PassContext& c);
void pass_scale_updates(Graph& g, const PassContext& c);
void pass_fuse_elementwise(Graph& g, const PassContext& c);
void pass_row_updates(Graph& g, const PassContext& c);
void pass_group_updates(Graph& g, const PassContext& c);
void pass_recompute(Graph& g, const PassContext& c);  // what costs next to nothing (recompute.hpp)
void pass_schedule_late(Graph& g, const PassContext& c);  // order of nodes, for memory

}  // namespace onnxtrain
