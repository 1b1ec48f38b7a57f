// Rows at the ends of blocks, for their neighbours.
#include <cstring>
#include <limits>

#include "distributed/split.hpp"
#include "distributed/split_nodes.hpp"

namespace onnxtrain {

namespace {

// The node that puts a row to the other end.
Node& joined(Graph& g, ValueId turned) {
  for (Node& n : g.nodes)
    if (n.outputs[0] == turned) return n;
  OT_ASSERT(false);
}

ValueId ints(Graph& g, const std::vector<int64_t>& v) { return g.add_constant(Tensor::vector(v)); }

ValueId slice(Graph& g, const RowAnalysis::Turn& turn, int64_t from, int64_t to, const char* what) {
  return call(g, "Slice", {turn.rows, ints(g, {from}), ints(g, {to}), ints(g, {turn.axis})},
              g.value_name(turn.turned) + what);
}

}  // namespace

// What a file computes its slices from may not fit one row: they are made anew.
TurnedRows::TurnedRows(Graph& g, const Graph& t, const std::vector<RowAnalysis::Turn>& turns,
                       int blocks)
    : turns_(turns) {
  if (turns.empty()) return;
  constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
  const ValueId here = g.add_value(kHereInput, TypeInfo::tensor(DType::kBool, Shape{blocks}));
  g.inputs.push_back(here);
  for (const RowAnalysis::Turn& turn : turns) {
    const std::string name = g.value_name(turn.turned);
    const ValueId edge =
                      turn.back ? slice(g, turn, -1, kEnd, "_edge") : slice(g, turn, 0, 1, "_edge"),
                  rest =
                      turn.back ? slice(g, turn, 0, -1, "_rest") : slice(g, turn, 1, kEnd, "_rest");
    joined(g, turn.turned).inputs =
        turn.back ? std::vector<ValueId>{edge, rest} : std::vector<ValueId>{rest, edge};
    Shape shape = t.value(turn.rows).type.concrete_shape();
    const DType elem = t.value(turn.rows).type.elem;
    std::vector<int64_t> line(shape.size() + 1, 1);
    line[0] = blocks;
    shape[size_t(turn.axis)] = 1;
    shape.insert(shape.begin(), blocks);
    Tensor zero(elem, {});
    std::memset(zero.data(), 0, zero.bytes());
    const ValueId at = call(g, "Reshape", {here, ints(g, line)}, name + "_here"),
                  row = call(g, "Unsqueeze", {edge, ints(g, {0})}, name + "_row");
    tables_.push_back(call(g, "Where", {at, row, g.add_constant(zero)}, name + "_edges"));
    g.value(tables_.back()).type = TypeInfo::tensor(elem, shape);
  }
}

void TurnedRows::use(Graph& g, const std::vector<ValueId>& summed) const {
  if (turns_.empty()) return;
  const auto number = [&](const char* name) {
    g.inputs.push_back(g.add_value(name, TypeInfo::tensor(DType::kInt64, Shape{})));
    return g.inputs.back();
  };
  const ValueId next = number(kNextInput), before = number(kBeforeInput);
  for (size_t k = 0; k < turns_.size(); ++k) {
    const RowAnalysis::Turn& turn = turns_[k];
    const ValueId row = call(g, "Gather", {summed[k], turn.back ? before : next},
                             g.value_name(turn.turned) + "_neighbour", {{"axis", int64_t(0)}});
    joined(g, turn.turned).inputs[turn.back ? 0 : 1] = row;
  }
}

}  // namespace onnxtrain
