// The graph inside a DeferredGradient node: the forward node once more, and a Gradient node behind
// it. The engine specialises it to the shapes it meets, so every rule then sees concrete types.
#include "autodiff/deferred_gradient.hpp"

#include <map>

#include "op/carries.hpp"

namespace onnxtrain {

namespace {

// Nodes with this ending are in such a graph already.
constexpr const char* kEnding = "@run";

bool is_deferred(const Node& n) { return n.is("DeferredGradient", kOwnDomain); }

struct Body {
  Graph& outer;
  int opset;
  GraphPtr graph = std::make_shared<Graph>();
  std::vector<ValueId> inputs = {};          // values of the outer graph
  std::map<ValueId, ValueId> inner_of = {};  // outer -> inner

  ValueId bring(ValueId v) {
    if (auto it = inner_of.find(v); it != inner_of.end()) return it->second;
    const ValueDef& d = outer.value(v);
    if (d.is_constant()) return inner_of[v] = graph->add_constant(d.constant);
    // integers decide shapes: their values are looked at before the graph is planned
    bool known = d.type.is_tensor() && !carries_gradient(d.type);
    TypeInfo type = d.type.is_tensor() ? TypeInfo::tensor(d.type.elem) : d.type;
    ValueId inner = graph->add_value(
        graph->unique_name(known ? std::string(kKnownInput) + d.name : d.name), type);
    graph->inputs.push_back(inner);
    inputs.push_back(v);
    return inner_of[v] = inner;
  }
  ValueId add(const char* op, std::vector<ValueId> in) {
    Node n;
    n.op = op;
    n.version = opset;
    n.inputs = std::move(in);
    if (n.op == "ReduceSum") n.attrs["keepdims"] = int64_t(0);
    ValueId out = graph->add_node(std::move(n), 1)[0];
    graph->nodes.back().name = graph->value_name(out);
    return out;
  }
};

std::vector<ValueId> forward_again(Body& body, const Node& n) {
  std::vector<ValueId> in;
  for (ValueId v : n.inputs) in.push_back(v == kNone ? kNone : body.bring(v));
  if (is_deferred(n)) return body.graph->append(*n.graph("body"), in, {});
  Node copy = n;
  copy.name += kEnding;
  copy.inputs = in;
  std::vector<ValueId> outs = body.graph->add_node(std::move(copy), int(n.outputs.size()));
  for (size_t k = 0; k < outs.size(); ++k)
    if (n.outputs[k] == kNone) body.graph->nodes.back().outputs[k] = kNone;
  return outs;
}

}  // namespace

bool can_defer(const Node& n, const Op& op, const std::string& code) {
  if (code != "OT1205" && code != "OT1206") return false;
  if (n.name.ends_with(kEnding) || op.random) return false;
  for (const auto& [key, a] : n.attrs)
    if (const GraphPtr* sub = std::get_if<GraphPtr>(&a))
      if (!(*sub)->captures.empty()) return false;
  return true;
}

std::vector<ValueId> deferred_gradient(Graph& g, const Node& n, const std::vector<ValueId>& dys,
                                       const std::vector<char>& wants, const std::string& why,
                                       int opset) {
  Body body{g, opset};
  body.graph->name = n.name + "_gradient";
  std::vector<ValueId> outs = forward_again(body, n);
  ValueId sum = kNone;
  for (size_t k = 0; k < dys.size(); ++k) {
    if (dys[k] == kNone) continue;
    ValueId s = body.add("ReduceSum", {body.add("Mul", {outs[k], body.bring(dys[k])})});
    sum = sum == kNone ? s : body.add("Add", {sum, s});
  }
  Node gradient;
  gradient.op = "Gradient";
  gradient.domain = kTrainingDomain;
  gradient.version = 1;
  gradient.name = n.name;
  std::vector<std::string> names;
  std::vector<size_t> at;
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    if (!wants[i] || !carries_gradient(g.value(n.inputs[i]).type)) continue;
    at.push_back(i);
    gradient.inputs.push_back(body.bring(n.inputs[i]));
    names.push_back(body.graph->value_name(gradient.inputs.back()));
  }
  std::vector<ValueId> xs = gradient.inputs;
  gradient.inputs.insert(gradient.inputs.end(), xs.begin(), xs.end());
  gradient.inputs.push_back(sum);
  gradient.attrs["xs"] = names;
  gradient.attrs["y"] = body.graph->value_name(sum);
  gradient.attrs["resolved"] = int64_t(1);
  body.graph->outputs = body.graph->add_node(std::move(gradient), int(xs.size()));
  Node run;
  run.op = "DeferredGradient";
  run.domain = kOwnDomain;
  run.version = 1;
  run.name = n.name + "_gradient";
  run.inputs = body.inputs;
  run.attrs["body"] = body.graph;
  run.attrs["why"] = why;
  std::vector<ValueId> made = g.add_node(std::move(run), int(xs.size()));
  std::vector<ValueId> out(n.inputs.size(), kNone);
  for (size_t k = 0; k < at.size(); ++k) {
    g.value(made[k]).type = g.value(n.inputs[at[k]]).type;
    out[at[k]] = made[k];
  }
  return out;
}

}  // namespace onnxtrain
