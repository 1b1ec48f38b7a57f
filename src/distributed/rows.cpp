// Follows rows through the graph of a training step.
#include <algorithm>

#include "distributed/row_follower.hpp"

namespace onnxtrain {

namespace {

bool is_gradient(const Node& n) { return n.is("Gradient", kTrainingDomain); }

// Operators that commute with adding over blocks, as long as at most one operand is a sum (or all
// are, for those that add).
bool adds(const Node& n) { return n.op == "Add" || n.op == "Sub" || n.op == "Sum"; }
bool is_linear(const Node& n) {
  static constexpr std::string_view kLinear[] = {
      "Identity", "Cast",       "CastLike", "Neg",       "Mul",       "Div",
      "Reshape",  "Squeeze",    "Flatten",  "Unsqueeze", "ReduceSum", "Expand",
      "Concat",   "ReduceMean", "Slice",    "Gather",    "Transpose", "Detach"};
  return std::find(std::begin(kLinear), std::end(kLinear), n.op) != std::end(kLinear);
}

}  // namespace

RowFollower::RowFollower(const Graph& g, const OpTable& table, int64_t rows)
    : g_(g), table_(table), rows_(rows) {
  r_.values.resize(g.values.size());
  find_way_to_gradients();
}

RowAnalysis RowFollower::run(const std::vector<int>& inputs, const std::vector<ValueId>& updates,
                             const std::vector<ValueId>& outputs) {
  for (size_t k = 0; k < g_.inputs.size(); ++k)
    if (inputs[k] >= 0) of(g_.inputs[k]) = RowClass::rows(inputs[k]);
  for (size_t k = 0; k < g_.nodes.size(); ++k) visit(g_.nodes[k], to_gradient_[k] != 0);
  for (ValueId v : updates) leave(v);
  for (ValueId v : outputs) leave(v);
  return std::move(r_);
}

// Nodes that some Gradient needs, and values that are differentiated by.
void RowFollower::find_way_to_gradients() {
  to_gradient_.assign(g_.nodes.size(), 0);
  std::vector<char> need(g_.values.size(), 0);
  for (size_t k = g_.nodes.size(); k-- > 0;) {
    const Node& n = g_.nodes[k];
    bool wanted = is_gradient(n);
    if (wanted)
      for (size_t i = 0; i < n.strings("xs").size(); ++i) of(n.inputs[i]).varies = true;
    for (ValueId v : n.outputs) wanted |= v != kNone && need[size_t(v)];
    if (!wanted) continue;
    to_gradient_[k] = 1;
    for (ValueId v : g_.reads(n)) need[size_t(v)] = 1;
  }
}

// What the update or the caller reads of the blocks.
void RowFollower::leave(ValueId v) {
  const RowClass::Kind kind = of(v).kind;
  if (kind == RowClass::kAverage) cut(r_.averages, v);
  if (kind == RowClass::kAverage || kind == RowClass::kPartial) cut(r_.sums, v);
}

void RowFollower::cut(std::vector<ValueId>& list, ValueId v) {
  if (std::find(list.begin(), list.end(), v) == list.end()) list.push_back(v);
}

void RowFollower::set(const Node& n, const RowClass& c) {
  for (ValueId v : n.outputs) {
    if (v == kNone) continue;
    const bool varies = of(v).varies || c.varies;
    of(v) = c;
    of(v).varies = varies;
  }
}

std::string RowFollower::place(const Node& n, const std::string& why) {
  return cat(n.label(), ": ", why);
}

// What the result is made of: of the second operand of CastLike only the type counts.
std::vector<ValueId> RowFollower::operands(const Node& n) const {
  return n.is("CastLike") ? std::vector<ValueId>{n.inputs[0]} : g_.reads(n);
}

void RowFollower::visit(const Node& n, bool to_gradient) {
  if (RowAnalysis::Turn turn; turns_rows(n, turn)) {
    set(n, of(turn.rows));
    r_.turns.push_back(turn);
  } else {
    classify(n, to_gradient);
  }
  mark_turned(n);
}

void RowFollower::classify(const Node& n, bool to_gradient) {
  bool partial = false, rows = false, varies = false, average = false;
  int stage = 0;
  for (ValueId v : operands(n)) {
    const RowClass& c = of(v);
    if (c.kind == RowClass::kMixed) return set(n, c);
    partial |= c.kind == RowClass::kPartial;
    rows |= c.kind == RowClass::kRows;
    average |= c.kind == RowClass::kAverage;
    varies |= c.varies;
    stage = std::max(stage, c.stage);
  }
  if (is_gradient(n)) return gradient(n);
  if (average && !partial && !rows && stage == 0) return set(n, RowClass::average());
  if (average && to_gradient)
    return set(
        n, RowClass::mixed(
               place(n,
                     "it reads a number that follows from the number of rows, or statistics of the "
                     "batch")));
  if (average) partial = true;
  if (partial) return with_partial(n, to_gradient, rows, varies, stage);
  if (!rows) return same(n, stage, varies);
  through(n, stage, varies);
}

// A value without rows that is repeated for every row of the batch (a class token): the axis of
// the rows in the result, or -1.
int RowFollower::repeated_along(const Node& n) const {
  if (n.op != "Expand" && n.op != "Tile") return -1;
  const TypeInfo &in = g_.value(n.inputs[0]).type, &out = g_.value(n.outputs[0]).type;
  if (!in.concrete() || !out.concrete()) return -1;
  const Shape from = in.concrete_shape(), to = out.concrete_shape();
  for (size_t d = 0; d < to.size(); ++d) {
    const auto at = int64_t(d) - int64_t(to.size()) + int64_t(from.size());
    if (to[d] == rows_ && (at < 0 || from[size_t(at)] == 1)) return int(d);
  }
  return -1;
}

// A constant that was made from the size of the batch and is alike for every row (an initial
// state of zeros): the axis of its rows, or -1.
int RowFollower::constant_along(const Node& n, size_t i) const {
  const RowNode node{g_, n, r_.values, rows_};
  if (!node.constant(i)) return -1;
  const Shape shape = node.in(i);
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] == rows_ && node.fits_all_rows(i, int(d))) return int(d);
  return -1;
}

// A node whose only rows are such constants.
bool RowFollower::through_constants(const Node& n, int stage, bool varies) {
  const Op* op = table_.find(n);
  if (!op || stage == 2) return false;
  for (const auto& [key, a] : n.attrs)
    if (std::holds_alternative<GraphPtr>(a)) return false;
  std::vector<std::pair<ValueId, RowClass>> kept;
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    const int axis = constant_along(n, i);
    if (axis < 0) continue;
    kept.emplace_back(n.inputs[i], of(n.inputs[i]));
    of(n.inputs[i]) = RowClass::rows(axis);
  }
  const bool known = !kept.empty() && !rows_through({g_, n, r_.values, rows_}, *op).outputs.empty();
  if (known) through(n, stage, varies);
  for (size_t k = kept.size(); k-- > 0;) of(kept[k].first) = kept[k].second;
  return known;
}

void RowFollower::same(const Node& n, int stage, bool varies) {
  if (through_constants(n, stage, varies)) return;
  RowClass c;
  if (const int axis = repeated_along(n); axis >= 0) c = RowClass::rows(axis);
  c.stage = stage;
  c.varies = varies;
  set(n, c);
}

void RowFollower::through(const Node& n, int stage, bool varies) {
  if (stage == 2)
    return set(n, RowClass::mixed(place(n,
                                        "it needs the gradient of the whole batch and its "
                                        "rows again, in one step")));
  const Op* op = table_.find(n);
  RowResult r;
  if (!through_bodies(n, r) && op) r = rows_through({g_, n, r_.values, rows_}, *op);
  if (r.mean == MeanOf::kLabels && of(n.inputs[1]).turned == 2)
    r = {{}, "its labels are made of a row and of the next one"};
  if (r.outputs.empty())
    return set(n, RowClass::mixed(
                      place(n, r.why.empty() ? "what it does with rows is not known" : r.why)));
  for (size_t k = 0; k < n.outputs.size(); ++k) {
    const ValueId v = n.outputs[k];
    if (v == kNone) continue;
    const bool already = of(v).varies;
    of(v) = r.outputs[k];
    of(v).stage = stage;
    of(v).varies = already || varies;
    if (r.is_mean && of(v).kind == RowClass::kPartial) {
      r_.means.emplace_back(v, r.mean);
      if (r.mean == MeanOf::kLabels) of(v).stage = 1;
    }
  }
  if (r.batch_norm) r_.batch_norms.push_back(n.outputs[0]);
  if (op && op->random && r.outputs[0].kind == RowClass::kRows) r_.random.push_back(n.outputs[0]);
}

// Is `n` still a sum over blocks when one operand, or each, is?
bool RowFollower::stays_partial(const Node& n, bool rows) {
  if (rows) return false;
  for (ValueId v : n.inputs)
    if (v != kNone && of(v).stage == 2) return false;
  if (adds(n)) return true;
  if (!is_linear(n)) return false;
  const bool cast = n.is("Cast") || n.is("CastLike");
  if (cast && !dtype_is_float(g_.value(n.outputs[0]).type.elem)) return false;
  if (n.op == "Concat") {
    for (ValueId v : n.inputs)
      if (of(v).kind != RowClass::kPartial) return false;
    return true;
  }
  for (size_t i = 1; i < n.inputs.size(); ++i)
    if (n.inputs[i] != kNone && of(n.inputs[i]).kind == RowClass::kPartial)
      return n.op == "Mul" && of(n.inputs[0]).kind != RowClass::kPartial;
  return true;
}

// Sums that do not depend on what is differentiated by can be known before the gradients are
// made: they are added over the blocks first, and the same for all of them then.
std::vector<size_t> RowFollower::counts_of(const Node& n) {
  std::vector<size_t> found;
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    if (n.inputs[i] == kNone) continue;
    const RowClass& c = of(n.inputs[i]);
    if (c.kind == RowClass::kPartial && !c.varies && c.stage == 0 && c.turned < 2)
      found.push_back(i);
  }
  return found;
}

void RowFollower::with_partial(const Node& n, bool to_gradient, bool rows, bool varies, int stage) {
  if (!to_gradient && !rows) return late(n, stage, varies);
  if (to_gradient && stays_partial(n, rows)) return set_partial(n, stage, varies);
  const std::vector<size_t> counts = counts_of(n);
  std::vector<RowClass> kept;
  for (size_t i : counts) kept.push_back(of(n.inputs[i]));
  for (size_t i : counts) of(n.inputs[i]) = RowClass{.stage = 1};
  bool left = false;
  for (ValueId v : g_.reads(n))
    left |= of(v).kind == RowClass::kPartial || of(v).kind == RowClass::kAverage;
  stage = std::max(stage, counts.empty() ? 0 : 1);
  if (left && to_gradient && stays_partial(n, rows))
    set_partial(n, stage, varies);
  else if (left)
    set(n, RowClass::mixed(place(
               n, to_gradient
                      ? "it is applied to a sum over the rows, so that the loss is no sum over rows"
                      : "it needs a sum over the batch and its rows again, outside of the loss")));
  else if (rows)
    through(n, stage, varies);
  else
    same(n, stage, varies);
  for (size_t k = 0; k < counts.size(); ++k) {
    of(n.inputs[counts[k]]) = kept[k];
    r_.counts.push_back({n.inputs[counts[k]], n.outputs[0], counts[k]});
  }
}

void RowFollower::set_partial(const Node& n, int stage, bool varies) {
  RowClass c = RowClass::partial();
  c.stage = stage;
  c.varies = varies;
  set(n, c);
  if (!adds(n)) return;
  for (size_t i = 0; i < n.inputs.size(); ++i)
    if (of(n.inputs[i]).kind == RowClass::kSame) r_.once.emplace_back(n.outputs[0], i);
}

// A node that no gradient needs: it is computed when all sums are there.
void RowFollower::late(const Node& n, int stage, bool varies) {
  for (ValueId v : g_.reads(n)) leave(v);
  same(n, std::max(stage, 2), varies);
}

// xs, zs, the same as values, y.
void RowFollower::gradient(const Node& n) {
  const size_t xs = n.strings("xs").size(), count = xs + n.strings("zs").size();
  const RowClass y = of(n.inputs.back());
  for (size_t k = 0; k < count; ++k) {
    const RowClass &given = of(n.inputs[k]), &named = of(n.inputs[count + k]);
    if (given.kind != named.kind || given.axis != named.axis || given.outer != named.outer)
      return set(n, RowClass::mixed(
                        place(n, cat("the value given for '", g_.value_name(n.inputs[count + k]),
                                     "' has other rows than it"))));
  }
  for (size_t k = 0; k < xs && k < n.outputs.size(); ++k) {
    if (n.outputs[k] == kNone) continue;
    RowClass c = of(n.inputs[k]);
    if (y.kind != RowClass::kSame && c.kind == RowClass::kSame)
      c = RowClass::partial();
    else if (c.kind == RowClass::kPartial)
      c = RowClass::mixed(place(n, "it differentiates by a sum over the rows"));
    if (y.stage == 2)
      c = RowClass::mixed(place(n,
                                "the loss depends on a gradient by parameters, which is known "
                                "only after all rows"));
    const bool varies = of(n.outputs[k]).varies;
    c.stage = y.kind == RowClass::kSame ? y.stage : std::max(c.stage, y.stage);
    c.varies = true;
    of(n.outputs[k]) = c;
    of(n.outputs[k]).varies |= varies;
  }
}
RowAnalysis analyse_rows(const Graph& g, const OpTable& table, int64_t rows,
                         const std::vector<int>& inputs, const std::vector<ValueId>& of_block,
                         const std::vector<ValueId>& updates, const std::vector<ValueId>& outputs) {
  RowFollower a(g, table, rows);
  for (ValueId v : of_block) a.is_number_of_block(v);
  return a.run(inputs, updates, outputs);
}

}  // namespace onnxtrain
