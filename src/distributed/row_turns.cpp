// Each row in the place of its neighbour, and one from the other end: what mixup does, and
// torch.roll by one row. The row of the next block comes from there (split_turns.cpp).
#include <algorithm>

#include "distributed/row_follower.hpp"

namespace onnxtrain {

namespace {

// Does a Slice take so many rows along `axis`, from `start` on?
bool sliced(const RowNode& n, int axis, int64_t start, int64_t length) {
  if (!n.n.is("Slice") || n.n.version < 10) return false;
  const Tensor *starts = n.constant(1), *ends = n.constant(2), *axes = n.constant(3);
  const TypeInfo &in = n.g.value(n.n.inputs[0]).type, &out = n.g.value(n.n.outputs[0]).type;
  if (!starts || !ends || !axes || !in.concrete() || !out.concrete()) return false;
  if (n.has(4) && (!n.constant(4) || n.constant(4)->to_ints() != std::vector<int64_t>{1}))
    return false;
  Shape expected = in.concrete_shape();
  if (size_t(axis) >= expected.size()) return false;
  const std::vector<int64_t> at = axes->to_ints(), from = starts->to_ints();
  const int64_t along = at.size() == 1 && at[0] < 0 ? at[0] + int64_t(expected.size())
                        : at.size() == 1            ? at[0]
                                                    : -1;
  const int64_t expected_rows = expected[size_t(axis)];
  expected[size_t(axis)] = length;
  const int64_t begin = from.size() == 1 && from[0] < 0 ? from[0] + expected_rows : from.at(0);
  const bool fits = along == axis && from.size() == 1 && begin == start;
  return fits && out.concrete_shape() == expected;
}

bool can_be_added(DType t) {
  static constexpr DType kTypes[] = {DType::kFloat,    DType::kDouble, DType::kFloat16,
                                     DType::kBFloat16, DType::kInt64,  DType::kInt32};
  return std::find(std::begin(kTypes), std::end(kTypes), t) != std::end(kTypes);
}

}  // namespace

// Only for what is known before gradients are: rows of other blocks are exchanged there.
bool RowFollower::turns_rows(const Node& n, RowAnalysis::Turn& turn) const {
  if (!n.is("Concat") || n.inputs.size() != 2) return false;
  const NodeId left = g_.value(n.inputs[0]).producer, right = g_.value(n.inputs[1]).producer;
  if (left < 0 || right < 0) return false;
  const Node &a = g_.nodes[size_t(left)], &b = g_.nodes[size_t(right)];
  if (a.inputs.empty() || b.inputs.empty() || a.inputs[0] != b.inputs[0]) return false;
  const RowClass& x = of(a.inputs[0]);
  const ValueDef& d = g_.value(a.inputs[0]);
  if (x.kind != RowClass::kRows || x.outer != 1 || x.varies || x.stage != 0 || x.turned != 0 ||
      !can_be_added(d.type.elem) || !d.type.concrete())
    return false;
  const auto rank = int64_t(d.type.concrete_shape().size());
  if (const int64_t axis = n.i("axis", 0); (axis < 0 ? axis + rank : axis) != x.axis) return false;
  const RowNode first{g_, a, r_.values, rows_}, second{g_, b, r_.values, rows_};
  const bool back = sliced(first, x.axis, rows_ - 1, 1) && sliced(second, x.axis, 0, rows_ - 1);
  if (!back && !(sliced(first, x.axis, 1, rows_ - 1) && sliced(second, x.axis, 0, 1))) return false;
  turn = {a.inputs[0], n.outputs[0], x.axis, back};
  return true;
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
