// Rows through If, Loop and Scan: their bodies are followed like the graph around them. What goes
// around in a loop has to keep its rows where they are.
#include <algorithm>

#include "distributed/row_follower.hpp"
#include "distributed/row_rules.hpp"

namespace onnxtrain {

namespace {

using row_rules::no;
using row_rules::normal;

constexpr const char* kShape = "the shape of an operand depends on the data";
constexpr const char* kOften = "how often it runs depends on the rows";

bool same_place(const RowClass& a, const RowClass& b) {
  return a.kind == b.kind &&
         (a.kind != RowClass::kRows || (a.axis == b.axis && a.outer == b.outer));
}

bool has_body(const Node& n) {
  return std::any_of(n.attrs.begin(), n.attrs.end(),
                     [](const auto& a) { return std::holds_alternative<GraphPtr>(a.second); });
}

// Is a constant of the body, made from the size of the batch, alike for every row?
bool is_alike(const Graph& g, ValueId v, const RowClass& rows, int64_t count) {
  const ValueDef& d = g.value(v);
  if (!d.is_constant() || !d.type.concrete()) return false;
  const Shape shape = d.constant.shape();
  if (size_t(rows.axis) >= shape.size() || shape[size_t(rows.axis)] != count) return false;
  Node reader;
  reader.inputs = {v};
  const std::vector<RowClass> none(g.values.size());
  return RowNode{g, reader, none, count}.fits_all_rows(0, rows.axis);
}

}  // namespace

// Classes of the body's outputs; one that says why when something in it cannot be cut. last: what
// was found in it is kept.
std::vector<RowClass> RowFollower::follow_body(const Node& n, const char* key,
                                               const std::vector<RowClass>& inputs, bool last) {
  const GraphPtr body = n.graph(key);
  RowFollower inner(*body, table_, rows_);
  for (size_t k = 0; k < inputs.size(); ++k) inner.of(body->inputs[k]) = inputs[k];
  for (const auto& c : body->captures) inner.of(c.inner) = of(c.outer);
  for (const Node& each : body->nodes) {
    if (each.is("Gradient", kTrainingDomain))
      inner.set(each, RowClass::mixed(place(each, "it differentiates inside of a loop or branch")));
    else
      inner.visit(each, true);
  }
  const RowAnalysis& found = inner.r_;
  const bool exchanges =
      !found.counts.empty() || !found.batch_norms.empty() || !found.turns.empty();
  std::vector<RowClass> out;
  for (ValueId v : body->outputs) {
    RowClass c = inner.of(v);
    if (c.kind == RowClass::kPartial || c.kind == RowClass::kAverage || exchanges)
      c = RowClass::mixed("inside of it something is computed from all rows of the batch");
    out.push_back(std::move(c));
  }
  if (!last) return out;
  for (ValueId v : found.random)
    r_.random_inside.push_back({{{n.outputs[0], key}}, v, inner.of(v).axis, inner.of(v).outer});
  for (RowAnalysis::Inside i : found.random_inside) {
    i.path.insert(i.path.begin(), {n.outputs[0], key});
    r_.random_inside.push_back(std::move(i));
  }
  return out;
}

// What a state begins with: a constant made from the size of the batch is rows.
RowClass RowFollower::initial(const Node& n, size_t i) const {
  if (n.inputs[i] == kNone) return {};
  const RowClass& c = of(n.inputs[i]);
  const int axis = c.kind == RowClass::kSame ? constant_along(n, i) : -1;
  return axis >= 0 ? RowClass::rows(axis) : c;
}

// inputs: classes of what goes into the body, changed until an iteration gives back what it got.
std::vector<RowClass> RowFollower::settle(const Node& n, std::vector<RowClass>& inputs,
                                          size_t first_state, size_t states, size_t first_result,
                                          std::string& why) {
  const GraphPtr body = n.graph("body");
  std::vector<RowClass> out;
  for (size_t round = 0; round <= states; ++round) {
    out = follow_body(n, "body", inputs, false);
    bool changed = false;
    for (size_t k = 0; k < states; ++k) {
      RowClass &in = inputs[first_state + k], &next = out[first_result + k];
      if (next.kind == RowClass::kMixed) {
        why = next.why;
        return {};
      }
      if (same_place(in, next)) {
        changed |= (next.varies && !in.varies) || next.stage > in.stage;
        in.varies |= next.varies;
        in.stage = std::max(in.stage, next.stage);
        continue;
      }
      const bool becomes_alike = in.kind == RowClass::kRows && next.kind == RowClass::kSame &&
                                 is_alike(*body, body->outputs[first_result + k], in, rows_);
      if (becomes_alike) continue;
      why = cat("what goes around as '", body->value_name(body->inputs[first_state + k]),
                "' does not keep its rows in their place");
      return {};
    }
    if (!changed) return follow_body(n, "body", inputs, true);
  }
  why = "its rows do not settle";
  return {};
}

RowResult RowFollower::through_loop(const Node& n) {
  if (n.inputs.size() < 2) return no("what it does with rows is not known");
  for (size_t i : {size_t(0), size_t(1)})
    if (n.inputs[i] != kNone && of(n.inputs[i]).kind != RowClass::kSame) return no(kOften);
  const size_t states = n.inputs.size() - 2;
  std::vector<RowClass> in(2);
  for (size_t k = 0; k < states; ++k) in.push_back(initial(n, k + 2));
  RowResult r;
  const std::vector<RowClass> out = settle(n, in, 2, states, 1, r.why);
  if (out.empty()) return r;
  if (out[0].kind != RowClass::kSame)
    return no(out[0].kind == RowClass::kMixed ? out[0].why : kOften);
  for (size_t k = 0; k < n.outputs.size(); ++k) {
    RowClass c = k < states ? in[k + 2] : out[k + 1];
    if (k >= states && c.kind == RowClass::kRows) ++c.axis;  // stacked in front
    r.outputs.push_back(std::move(c));
  }
  return r;
}

RowResult RowFollower::through_scan(const Node& n) {
  const int64_t scanned = n.i("num_scan_inputs", 0);
  if (n.version < 9 || scanned < 1 || size_t(scanned) > n.inputs.size())
    return no("what it does with rows is not known");
  const size_t states = n.inputs.size() - size_t(scanned);
  const std::vector<int64_t> from = n.ints("scan_input_axes"), to = n.ints("scan_output_axes");
  std::vector<RowClass> in;
  for (size_t k = 0; k < n.inputs.size(); ++k) {
    RowClass c = k < states ? initial(n, k) : of(n.inputs[k]);
    if (k >= states && c.kind == RowClass::kRows) {
      if (!g_.value(n.inputs[k]).type.concrete()) return no(kShape);
      const size_t rank = g_.value(n.inputs[k]).type.concrete_shape().size();
      const int axis = normal(k - states < from.size() ? from[k - states] : 0, rank);
      if (axis == c.axis) return no("it goes from row to row");
      c.axis -= axis < c.axis;
    }
    in.push_back(std::move(c));
  }
  RowResult r;
  const std::vector<RowClass> out = settle(n, in, 0, states, 0, r.why);
  if (out.empty()) return r;
  for (size_t k = 0; k < n.outputs.size(); ++k) {
    RowClass c = k < states ? in[k] : out[k];
    if (k >= states && c.kind == RowClass::kRows) {
      const TypeInfo& type = n.graph("body")->value(n.graph("body")->outputs[k]).type;
      if (!type.concrete()) return no(kShape);
      const size_t rank = type.concrete_shape().size() + 1;
      c.axis += normal(k - states < to.size() ? to[k - states] : 0, rank) <= c.axis;
    }
    r.outputs.push_back(std::move(c));
  }
  return r;
}

RowResult RowFollower::through_if(const Node& n) {
  if (of(n.inputs[0]).kind != RowClass::kSame) return no("its condition depends on the rows");
  const std::vector<RowClass> yes = follow_body(n, "then_branch", {}, true),
                              other = follow_body(n, "else_branch", {}, true);
  RowResult r;
  for (size_t k = 0; k < n.outputs.size(); ++k) {
    if (!same_place(yes[k], other[k]))
      return no("its two branches do not have the rows at the same place");
    r.outputs.push_back(yes[k]);
    r.outputs.back().varies |= other[k].varies;
  }
  return r;
}

// false: the node has no body. Types that are not known are answered by the rules of operators.
bool RowFollower::through_bodies(const Node& n, RowResult& r) {
  if (!has_body(n)) return false;
  if (n.domain.empty() && n.op == "Loop")
    r = through_loop(n);
  else if (n.domain.empty() && n.op == "Scan")
    r = through_scan(n);
  else if (n.domain.empty() && n.op == "If")
    r = through_if(n);
  else
    r = no("what it does with rows is not known");
  for (RowClass& c : r.outputs)
    if (c.kind == RowClass::kMixed) c.why = place(n, c.why);
  return true;
}

}  // namespace onnxtrain
