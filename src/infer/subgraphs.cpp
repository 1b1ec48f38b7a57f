// Shape functions run over copies of the bodies.
#include "infer/subgraphs.hpp"

#include <algorithm>

#include "op/fold.hpp"
#include "op/loop_condition.hpp"
#include "op/model_refusal.hpp"

namespace onnxtrain {

namespace {

bool same(const TypeInfo& a, const TypeInfo& b) {
  return a.concrete() && b.concrete() && a.elem == b.elem &&
         a.concrete_shape() == b.concrete_shape();
}

// A copy of the body with the types and constants that follow when its inputs have these types.
Graph typed(const Graph& outer, const Graph& body, const std::vector<TypeInfo>& inputs,
            const OpTable& table) {
  Graph copy = body.clone();
  for (const Node& n : copy.nodes)
    for (ValueId v : n.outputs)
      if (v != kNone) copy.value(v).type.shape = std::nullopt;  // said for the general case only
  for (size_t k = 0; k < inputs.size(); ++k) {
    copy.value(copy.inputs[k]).type = inputs[k];
    copy.value(copy.inputs[k]).constant = Tensor();
  }
  for (const auto& c : copy.captures) {
    copy.value(c.inner).type = outer.value(c.outer).type;
    bool fed = std::find(outer.inputs.begin(), outer.inputs.end(), c.outer) != outer.inputs.end();
    if (outer.value(c.outer).is_constant() && !fed)
      copy.value(c.inner).constant = outer.value(c.outer).constant;
  }
  for (const Node& n : copy.nodes) {
    // a branch that these inputs never take may not fit them
    model_refusal([&] {
      if (infer_node(copy, n, table))
        fold_node(copy, n, table);
      else
        infer_subgraph_results(copy, n, table);
    });
  }
  return copy;
}

// Types of the body's outputs when its inputs have these types.
std::vector<TypeInfo> results_of(const Graph& outer, const Graph& body,
                                 const std::vector<TypeInfo>& inputs, const OpTable& table) {
  const Graph copy = typed(outer, body, inputs, table);
  std::vector<TypeInfo> out;
  for (ValueId v : copy.outputs) out.push_back(copy.value(v).type);
  return out;
}

void set(Graph& g, const Node& n, size_t output, const TypeInfo& t) {
  if (output < n.outputs.size() && n.outputs[output] != kNone && t.is_tensor() &&
      t.elem != DType::kUndefined)
    g.value(n.outputs[output]).type = t;
}

TypeInfo type_of(const Graph& g, const Node& n, size_t input) {
  return input < n.inputs.size() && n.inputs[input] != kNone ? g.value(n.inputs[input]).type
                                                             : TypeInfo();
}

void infer_if(Graph& g, const Node& n, const OpTable& table) {
  GraphPtr yes = n.graph("then_branch"), no = n.graph("else_branch");
  if (!yes || !no || !yes->inputs.empty() || !no->inputs.empty()) return;
  std::vector<TypeInfo> a = results_of(g, *yes, {}, table), b = results_of(g, *no, {}, table);
  for (size_t k = 0; k < a.size() && k < b.size(); ++k)
    if (same(a[k], b[k])) set(g, n, k, a[k]);
}

// Gives each state its initial type and takes the shape away from those that an iteration changes,
// until nothing changes; returns the body's results.
std::vector<TypeInfo> settle(const Graph& g, const Graph& body, std::vector<TypeInfo>& inputs,
                             size_t first_state, size_t states, size_t first_result,
                             const OpTable& table) {
  std::vector<TypeInfo> out;
  for (size_t round = 0; round <= states; ++round) {
    out = results_of(g, body, inputs, table);
    bool changed = false;
    for (size_t k = 0; k < states; ++k) {
      TypeInfo& t = inputs[first_state + k];
      if (!t.concrete() || same(t, out[first_result + k])) continue;
      t.shape = std::nullopt;
      changed = true;
    }
    if (!changed) break;
  }
  return out;
}

TypeInfo stacked(const TypeInfo& element, int64_t axis, Dim length) {
  TypeInfo t = element;
  if (!t.is_tensor() || !t.shape) return t;
  int64_t rank = int64_t(t.shape->size()) + 1;
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return TypeInfo::tensor(t.elem);
  t.shape->insert(t.shape->begin() + axis, std::move(length));
  return t;
}

// What goes into a body, and what it gives.
struct BodyTypes {
  std::vector<TypeInfo> in, out;
  size_t states = 0;
  Dim length = {};  // of what is stacked
};

const Tensor* constant_in(const Graph& g, const Node& n, size_t input) {
  const ValueId v = n.inputs[input];
  if (v == kNone || std::find(g.inputs.begin(), g.inputs.end(), v) != g.inputs.end())
    return nullptr;
  const ValueDef& d = g.value(v);
  return d.is_constant() && d.constant.size() == 1 ? &d.constant : nullptr;
}

// Iterations of a loop that nothing ends early; unknown for others.
Dim trips_of(const Graph& g, const Node& n, const Graph& body) {
  const Tensor *trips = constant_in(g, n, 0), *go = constant_in(g, n, 1);
  if (!trips || trips->dtype() != DType::kInt64 || !always_goes_on(body)) return {};
  if (n.inputs[1] != kNone && (!go || go->dtype() != DType::kBool || !*go->as<bool>())) return {};
  return {std::max<int64_t>(0, trips->to_ints().at(0)), {}};
}

bool loop_types(const Graph& g, const Node& n, const OpTable& table, BodyTypes& t) {
  GraphPtr body = n.graph("body");
  if (!body || n.inputs.size() < 2 || body->inputs.size() != n.inputs.size()) return false;
  t.states = n.inputs.size() - 2;
  if (body->outputs.size() < t.states + 1) return false;
  t.in = {TypeInfo::tensor(DType::kInt64, {}), TypeInfo::tensor(DType::kBool, {})};
  for (size_t k = 0; k < t.states; ++k) t.in.push_back(type_of(g, n, k + 2));
  t.out = settle(g, *body, t.in, 2, t.states, 1, table);
  t.length = trips_of(g, n, *body);
  return true;
}

void infer_loop(Graph& g, const Node& n, const OpTable& table, bool lengths) {
  BodyTypes t;
  if (!loop_types(g, n, table, t)) return;
  for (size_t k = 0; k < t.states; ++k)
    if (t.in[k + 2].concrete()) set(g, n, k, t.in[k + 2]);
  for (size_t k = t.states; k + 1 < t.out.size(); ++k)
    set(g, n, k, stacked(t.out[k + 1], 0, lengths ? t.length : Dim{}));
}

bool scan_types(const Graph& g, const Node& n, const OpTable& table, BodyTypes& all) {
  GraphPtr body = n.graph("body");
  int64_t scanned = n.i("num_scan_inputs", 0);
  if (n.version < 9 || !body || scanned < 1 || scanned > int64_t(n.inputs.size()) ||
      body->inputs.size() != n.inputs.size())
    return false;
  const size_t states = all.states = n.inputs.size() - size_t(scanned);
  if (body->outputs.size() < states) return false;
  const std::vector<int64_t> in_axes = n.ints("scan_input_axes");
  for (size_t k = 0; k < n.inputs.size(); ++k) {
    TypeInfo t = type_of(g, n, k);
    if (k >= states && t.concrete()) {
      int64_t axis = k - states < in_axes.size() ? in_axes[k - states] : 0,
              rank = int64_t(t.shape->size());
      if (axis < 0) axis += rank;
      if (axis < 0 || axis >= rank) return false;
      all.length = (*t.shape)[size_t(axis)];
      t.shape->erase(t.shape->begin() + axis);
    } else if (k >= states && t.is_tensor()) {
      t.shape = std::nullopt;
    }
    all.in.push_back(t);
  }
  all.out = settle(g, *body, all.in, 0, states, 0, table);
  return true;
}

void infer_scan(Graph& g, const Node& n, const OpTable& table) {
  BodyTypes t;
  if (!scan_types(g, n, table, t)) return;
  const std::vector<int64_t> axes = n.ints("scan_output_axes");
  for (size_t k = 0; k < t.states; ++k)
    if (t.in[k].concrete()) set(g, n, k, t.in[k]);
  for (size_t k = t.states; k < t.out.size(); ++k)
    set(g, n, k, stacked(t.out[k], k - t.states < axes.size() ? axes[k - t.states] : 0, t.length));
}

}  // namespace

void infer_subgraph_results(Graph& g, const Node& n, const OpTable& table, bool lengths) {
  if (!n.domain.empty()) return;
  if (n.op == "If") infer_if(g, n, table);
  if (n.op == "Loop") infer_loop(g, n, table, lengths);
  if (n.op == "Scan") infer_scan(g, n, table);
}

void type_bodies(Graph& g, const OpTable& table) {
  for (Node& n : g.nodes) {
    auto put = [&](const char* key, const std::vector<TypeInfo>& inputs) {
      auto copy = std::make_shared<Graph>(typed(g, *n.graph(key), inputs, table));
      std::erase_if(copy->nodes, [&](const Node& inner) {
        return std::all_of(inner.outputs.begin(), inner.outputs.end(),
                           [&](ValueId v) { return v == kNone || copy->value(v).is_constant(); });
      });
      copy->renumber();
      type_bodies(*copy, table);
      n.attrs[key] = GraphPtr(copy);
    };
    BodyTypes t;
    if (n.is("If") && n.graph("then_branch") && n.graph("else_branch")) {
      put("then_branch", {});
      put("else_branch", {});
    } else if ((n.is("Loop") && loop_types(g, n, table, t)) ||
               (n.is("Scan") && scan_types(g, n, table, t))) {
      put("body", t.in);
    }
  }
}

}  // namespace onnxtrain
