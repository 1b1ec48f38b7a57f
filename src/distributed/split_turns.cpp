// First rows of blocks, for the blocks before them.
#include <cstring>

#include "distributed/split.hpp"
#include "distributed/split_nodes.hpp"

namespace onnxtrain {

namespace {

// The node that puts the first row behind the others.
Node& end_of(Graph& g, ValueId turned) {
  for (Node& n : g.nodes)
    if (n.outputs[0] == turned) return n;
  OT_ASSERT(false);
}

}  // namespace

TurnedRows::TurnedRows(Graph& g, const Graph& t, const std::vector<RowAnalysis::Turn>& turns,
                       int blocks) {
  if (turns.empty()) return;
  const ValueId here = g.add_value(kHereInput, TypeInfo::tensor(DType::kBool, Shape{blocks}));
  g.inputs.push_back(here);
  for (const RowAnalysis::Turn& turn : turns) {
    const ValueId first = end_of(g, turn.turned).inputs[1];
    const std::string name = g.value_name(turn.turned);
    Shape shape = t.value(first).type.concrete_shape();
    const DType elem = t.value(first).type.elem;
    std::vector<int64_t> line(shape.size() + 1, 1);
    line[0] = blocks;
    shape.insert(shape.begin(), blocks);
    Tensor zero(elem, {});
    std::memset(zero.data(), 0, zero.bytes());
    const ValueId at =
        call(g, "Reshape", {here, g.add_constant(Tensor::vector(line))}, name + "_here");
    const ValueId row =
        call(g, "Unsqueeze", {first, g.add_constant(Tensor::vector(std::vector<int64_t>{0}))},
             name + "_first");
    tables_.push_back(call(g, "Where", {at, row, g.add_constant(zero)}, name + "_firsts"));
    g.value(tables_.back()).type = TypeInfo::tensor(elem, shape);
    ends_.push_back(turn.turned);
  }
}

void TurnedRows::use(Graph& g, const std::vector<ValueId>& summed) const {
  if (ends_.empty()) return;
  const ValueId next = g.add_value(kNextInput, TypeInfo::tensor(DType::kInt64, Shape{}));
  g.inputs.push_back(next);
  for (size_t k = 0; k < ends_.size(); ++k) {
    const ValueId row = call(g, "Gather", {summed[k], next}, g.value_name(ends_[k]) + "_next",
                             {{"axis", int64_t(0)}});
    end_of(g, ends_[k]).inputs[1] = row;
  }
}

}  // namespace onnxtrain
