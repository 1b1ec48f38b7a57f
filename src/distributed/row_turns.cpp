// Each row in the place of the one before it, the first in that of the last: what mixup does, and
// torch.roll. The first row of the next block comes from there (split.cpp).
#include <algorithm>

#include "distributed/row_follower.hpp"

namespace onnxtrain {

namespace {

// The value that a Slice takes `length` of along `axis`, from `start` on; kNone: it does not.
ValueId sliced(const RowNode& n, int axis, int64_t start, int64_t length) {
  if (!n.n.is("Slice") || n.n.version < 10) return kNone;
  const Tensor *starts = n.constant(1), *ends = n.constant(2), *axes = n.constant(3);
  const TypeInfo &in = n.g.value(n.n.inputs[0]).type, &out = n.g.value(n.n.outputs[0]).type;
  if (!starts || !ends || !axes || !in.concrete() || !out.concrete()) return kNone;
  if (n.has(4) && (!n.constant(4) || n.constant(4)->to_ints() != std::vector<int64_t>{1}))
    return kNone;
  Shape expected = in.concrete_shape();
  if (size_t(axis) >= expected.size()) return kNone;
  const std::vector<int64_t> at = axes->to_ints(), from = starts->to_ints();
  const int64_t along = at.size() == 1 && at[0] < 0 ? at[0] + int64_t(expected.size())
                        : at.size() == 1            ? at[0]
                                                    : -1;
  expected[size_t(axis)] = length;
  const bool fits = along == axis && from == std::vector<int64_t>{start};
  return fits && out.concrete_shape() == expected ? n.n.inputs[0] : kNone;
}

bool can_be_added(DType t) {
  static constexpr DType kTypes[] = {DType::kFloat,    DType::kDouble, DType::kFloat16,
                                     DType::kBFloat16, DType::kInt64,  DType::kInt32};
  return std::find(std::begin(kTypes), std::end(kTypes), t) != std::end(kTypes);
}

}  // namespace

// Only for what is known before gradients are: rows of other blocks are exchanged there.
ValueId RowFollower::turned_rows(const Node& n) const {
  if (!n.is("Concat") || n.inputs.size() != 2) return kNone;
  const NodeId most = g_.value(n.inputs[0]).producer, first = g_.value(n.inputs[1]).producer;
  if (most < 0 || first < 0) return kNone;
  const Node &a = g_.nodes[size_t(most)], &b = g_.nodes[size_t(first)];
  if (a.inputs.empty() || b.inputs.empty() || a.inputs[0] != b.inputs[0]) return kNone;
  const RowClass& x = of(a.inputs[0]);
  const ValueDef& d = g_.value(a.inputs[0]);
  if (x.kind != RowClass::kRows || x.outer != 1 || x.varies || x.stage != 0 || x.turned != 0 ||
      !can_be_added(d.type.elem) || !d.type.concrete())
    return kNone;
  const auto rank = int64_t(d.type.concrete_shape().size());
  if (const int64_t axis = n.i("axis", 0); (axis < 0 ? axis + rank : axis) != x.axis) return kNone;
  if (sliced({g_, a, r_.values, rows_}, x.axis, 1, rows_ - 1) == kNone) return kNone;
  return sliced({g_, b, r_.values, rows_}, x.axis, 0, 1);
}

void RowFollower::mark_turned(const Node& n) {
  int seen = 0;  // 1: rows in their places, 2: turned ones
  for (const RowAnalysis::Turn& t : r_.turns)
    if (t.turned == n.outputs[0]) seen = 2;
  for (ValueId v : seen == 0 ? operands(n) : std::vector<ValueId>{}) {
    const RowClass& c = of(v);
    if (c.kind == RowClass::kRows || c.kind == RowClass::kPartial) seen |= 1 + c.turned;
  }
  if (const Op* op = table_.find(n); op && op->random && seen != 0) seen |= 1;
  if (seen < 2) return;
  for (ValueId v : n.outputs)
    if (v != kNone) of(v).turned = uint8_t(seen - 1);
}

}  // namespace onnxtrain
