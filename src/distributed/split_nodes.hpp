// Nodes that are added to the parts of a step. Internal to distributed/.
#pragma once
#include <string>
#include <vector>

#include "distributed/rows.hpp"

namespace onnxtrain {

// Appends a node of the standard operators with one output.
inline ValueId call(Graph& g, const char* op, std::vector<ValueId> inputs, const std::string& hint,
                    Attributes attrs = {}) {
  constexpr int kOpset = 18;
  Node n;
  n.op = op;
  n.version = kOpset;
  n.name = g.unique_name(hint);
  n.inputs = std::move(inputs);
  n.attrs = std::move(attrs);
  return g.add_node(std::move(n), 1, hint)[0];
}

// RowAnalysis::turns in the graph of a block: the row that comes from the other end is that of the
// neighbouring block that has rows. Those come from a table with such a row of every block, which
// is added up before.
class TurnedRows {
 public:
  // `t`: the template that `turns` is about.
  TurnedRows(Graph& block, const Graph& t, const std::vector<RowAnalysis::Turn>& turns, int blocks);
  // This block's row of each table; the other rows are 0.
  const std::vector<ValueId>& tables() const { return tables_; }
  // summed: tables of all blocks, in the same order.
  void use(Graph& block, const std::vector<ValueId>& summed) const;

 private:
  std::vector<RowAnalysis::Turn> turns_;
  std::vector<ValueId> tables_;
};

}  // namespace onnxtrain
