// Partial evaluation of a graph with known input types.
#include "infer/specialise.hpp"

#include "infer/subgraphs.hpp"
#include "op/fold.hpp"

namespace onnxtrain {

namespace {

constexpr int64_t kTextToFold = 1 << 20;

struct NodeTypes {
  std::vector<TensorType> in;
  std::vector<const Tensor*> values;
  bool all_typed = true, all_constant = true;
};

// Values that a Gradient node differentiates with respect to are variables even when their value is
// known: what is computed from them must stay in the graph until the gradient is expanded.
std::vector<char> variables_of(const Graph& g) {
  std::vector<char> is_variable(g.values.size(), 0);
  for (ValueId v : g.inputs) is_variable[size_t(v)] = 1;
  for (const Node& n : g.nodes)
    if (n.is("Gradient", kTrainingDomain))
      for (ValueId v : n.inputs)
        if (v != kNone) is_variable[size_t(v)] = 1;
  return is_variable;
}

NodeTypes types_of(const Graph& g, const Node& n, const std::vector<char>& is_variable) {
  NodeTypes t;
  for (ValueId v : n.inputs) {
    if (v == kNone) {
      t.in.push_back({});
      t.values.push_back(nullptr);
      continue;
    }
    const ValueDef& d = g.value(v);
    bool typed = d.type.concrete();
    t.all_typed &= typed;
    t.in.push_back(typed ? TensorType{d.type.elem, d.type.concrete_shape()} : TensorType{});
    const Tensor* c = d.is_constant() && !is_variable[size_t(v)] ? &d.constant : nullptr;
    t.values.push_back(c);
    t.all_constant &= c != nullptr;
  }
  return t;
}

// Runs the node now; its outputs become constants.
void fold(Graph& g, const Node& n, const Op& op, const NodeTypes& t,
          const std::vector<TensorType>& out, ThreadPool& pool) {
  std::vector<Tensor> results = run_node_now(n, op, t.in, t.values, out, pool);
  for (size_t k = 0; k < n.outputs.size(); ++k)
    if (n.outputs[k] != kNone) {
      ValueDef& d = g.value(n.outputs[k]);
      d.constant = results[k];
      d.producer = -1;
    }
}

// A value that is not known before the run: keep what is known of its type, forget sizes that
// belong to the general graph only.
void make_dynamic(Graph& g, const Node& n) {
  for (ValueId v : n.outputs) {
    if (v == kNone) continue;
    TypeInfo& t = g.value(v).type;
    if (!t.is_tensor() || !t.shape) continue;
    if (t.concrete()) t.shape = std::nullopt;
  }
}

}  // namespace

void specialise(Graph& g, const OpTable& table, ThreadPool& pool, const SpecialiseOptions& o) {
  std::vector<char> is_variable = variables_of(g);
  std::vector<Node> kept;
  kept.reserve(g.nodes.size());
  for (Node& n : g.nodes) {
    const Op& op = table.get(n);
    if (op.run_values && !op.shape) {
      make_dynamic(g, n);
      infer_subgraph_results(g, n, table, o.loop_lengths);
      kept.push_back(std::move(n));
      continue;
    }
    NodeTypes t = types_of(g, n, is_variable);
    if (!t.all_typed) {
      make_dynamic(g, n);
      kept.push_back(std::move(n));
      continue;
    }
    ShapeCtx ctx(n, t.in, t.values);
    bool is_static = true;
    try {
      is_static = infer_shape(op, ctx);
    } catch (Error& e) {
      e.add_place("in " + n.label());
      throw;
    }
    for (char d : ctx.dynamic) is_static &= !d;
    if (!is_static) {
      make_dynamic(g, n);
      for (size_t k = 0; k < n.outputs.size(); ++k)
        if (n.outputs[k] != kNone && ctx.out[k].present() &&
            !g.value(n.outputs[k]).type.is_tensor())
          g.value(n.outputs[k]).type = TypeInfo::tensor(ctx.out[k].dtype);
      kept.push_back(std::move(n));
      continue;
    }
    int64_t bytes = 0;
    for (size_t k = 0; k < n.outputs.size(); ++k)
      if (n.outputs[k] != kNone) {
        g.value(n.outputs[k]).type = TypeInfo::tensor(ctx.out[k].dtype, ctx.out[k].shape);
        bytes += ctx.out[k].size() * int64_t(dtype_size(ctx.out[k].dtype));
      }
    // text can double in every node
    const bool much_text = t.all_constant && text_to_fold(t.values, ctx.out) > kTextToFold;
    bool foldable = !op.random && !op.impls.empty() && !much_text &&
                    ((t.all_constant && bytes <= o.fold_limit) ||
                     (op.types_only && bytes <= o.shape_fold_limit));
    if (foldable) {
      fold(g, n, op, t, ctx.out, pool);
    } else {
      kept.push_back(std::move(n));
    }
  }
  g.nodes = std::move(kept);
  g.renumber();
}

}  // namespace onnxtrain
