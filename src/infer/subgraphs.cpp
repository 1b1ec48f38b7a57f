// Shape functions run over copies of the bodies.
#include "infer/subgraphs.hpp"

#include <algorithm>

#include "op/fold.hpp"
#include "op/model_refusal.hpp"

namespace onnxtrain {

namespace {

bool same(const TypeInfo& a, const TypeInfo& b) {
  return a.concrete() && b.concrete() && a.elem == b.elem &&
         a.concrete_shape() == b.concrete_shape();
}

// Types of the body's outputs when its inputs have these types.
std::vector<TypeInfo> results_of(const Graph& outer, const Graph& body,
                                 const std::vector<TypeInfo>& inputs, const OpTable& table) {
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

void infer_loop(Graph& g, const Node& n, const OpTable& table) {
  GraphPtr body = n.graph("body");
  if (!body || n.inputs.size() < 2 || body->inputs.size() != n.inputs.size()) return;
  size_t states = n.inputs.size() - 2;
  if (body->outputs.size() < states + 1) return;
  std::vector<TypeInfo> inputs = {TypeInfo::tensor(DType::kInt64, {}),
                                  TypeInfo::tensor(DType::kBool, {})};
  for (size_t k = 0; k < states; ++k) inputs.push_back(type_of(g, n, k + 2));
  std::vector<TypeInfo> out = settle(g, *body, inputs, 2, states, 1, table);
  for (size_t k = 0; k < states; ++k)
    if (inputs[k + 2].concrete()) set(g, n, k, inputs[k + 2]);
  for (size_t k = states; k + 1 < out.size(); ++k) set(g, n, k, stacked(out[k + 1], 0, Dim{}));
}

void infer_scan(Graph& g, const Node& n, const OpTable& table) {
  GraphPtr body = n.graph("body");
  int64_t scanned = n.i("num_scan_inputs", 0);
  if (n.version < 9 || !body || scanned < 1 || scanned > int64_t(n.inputs.size()) ||
      body->inputs.size() != n.inputs.size())
    return;
  size_t states = n.inputs.size() - size_t(scanned);
  if (body->outputs.size() < states) return;
  std::vector<int64_t> in_axes = n.ints("scan_input_axes"), out_axes = n.ints("scan_output_axes");
  std::vector<TypeInfo> inputs;
  Dim length;
  for (size_t k = 0; k < n.inputs.size(); ++k) {
    TypeInfo t = type_of(g, n, k);
    if (k >= states && t.concrete()) {
      int64_t axis = k - states < in_axes.size() ? in_axes[k - states] : 0,
              rank = int64_t(t.shape->size());
      if (axis < 0) axis += rank;
      if (axis < 0 || axis >= rank) return;
      length = (*t.shape)[size_t(axis)];
      t.shape->erase(t.shape->begin() + axis);
    } else if (k >= states && t.is_tensor()) {
      t.shape = std::nullopt;
    }
    inputs.push_back(t);
  }
  std::vector<TypeInfo> out = settle(g, *body, inputs, 0, states, 0, table);
  for (size_t k = 0; k < states; ++k)
    if (inputs[k].concrete()) set(g, n, k, inputs[k]);
  for (size_t k = states; k < out.size(); ++k)
    set(g, n, k, stacked(out[k], k - states < out_axes.size() ? out_axes[k - states] : 0, length));
}

}  // namespace

void infer_subgraph_results(Graph& g, const Node& n, const OpTable& table) {
  if (!n.domain.empty()) return;
  if (n.op == "If") infer_if(g, n, table);
  if (n.op == "Loop") infer_loop(g, n, table);
  if (n.op == "Scan") infer_scan(g, n, table);
}

}  // namespace onnxtrain
