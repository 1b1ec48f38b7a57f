// Adds a weighted sum of the outputs and a Gradient node to a copy of the graph and runs it.
#include "engine/gradients.hpp"

#include <algorithm>

#include "autodiff/autodiff.hpp"
#include "core/thread_count.hpp"

namespace onnxtrain {

namespace {

ValueId tensor_named(const Graph& g, const std::string& name) {
  ValueId v = g.find(name);
  if (v == kNone) {
    std::vector<std::string> names;
    for (const ValueDef& d : g.values)
      if (!d.name.empty()) names.push_back(d.name);
    usage_error("OT1126", cat("the model has no tensor named '", name, "'"),
                name_hint(name, names));
  }
  return v;
}

ValueId add(Graph& g, const char* op, std::vector<ValueId> in) {
  Node n;
  n.op = op;
  n.version = kGradOpset;
  n.inputs = std::move(in);
  if (n.op == "ReduceSum") n.attrs["keepdims"] = int64_t(0);
  if (n.op == "Cast") n.attrs["to"] = int64_t(DType::kDouble);
  ValueId out = g.add_node(std::move(n), 1, "onnxtrain.gradients")[0];
  g.nodes.back().name = g.value_name(out);
  return out;
}

// sum over `of` of <cotangent, y>; outputs of different types are added as double
ValueId weighted_sum(Graph& g, const GradientRequest& r, const std::vector<std::string>& of) {
  ValueId sum = kNone;
  bool mixed = false;
  for (const auto& name : of)
    mixed |= g.value(tensor_named(g, name)).type.elem != g.value(tensor_named(g, of[0])).type.elem;
  for (const auto& name : of) {
    ValueId y = tensor_named(g, name);
    auto c = r.cotangents.find(name);
    if (c != r.cotangents.end()) {
      y = add(g, "Mul", {y, g.add_constant(c->second)});
      g.nodes.back().name = cat("cotangent of ", name);
    }
    ValueId s = add(g, "ReduceSum", {y});
    if (mixed) s = add(g, "Cast", {s});
    sum = sum == kNone ? s : add(g, "Add", {sum, s});
  }
  return sum;
}

// The main graph; when a name is found only in a training section (its loss, say), together with
// that section.
Graph graph_with(const Model& model, const GradientRequest& r) {
  auto has_all = [&](const Graph& g) {
    auto known = [&](const std::string& name) { return g.find(name) != kNone; };
    return std::all_of(r.of.begin(), r.of.end(), known) &&
           std::all_of(r.wrt.begin(), r.wrt.end(), known);
  };
  if (!has_all(model.main))
    for (const TrainingStep& step : model.training)
      if (Graph g = combine(model.main, step); has_all(g)) return g;
  Graph g = model.main.clone();
  resolve_gradients(g);
  return g;
}

}  // namespace

std::vector<NamedValue> gradients(const Model& model, const Feeds& feeds,
                                  const GradientRequest& request, const ProgramOptions& options) {
  Graph g = graph_with(model, request);
  for (ValueDef& d : g.values) d.state.clear();
  std::vector<std::string> of = request.of;
  if (of.empty())
    for (ValueId v : g.outputs)
      if (g.value(v).type.is_tensor() && dtype_is_differentiable(g.value(v).type.elem))
        of.push_back(g.value_name(v));
  if (of.empty())
    throw Error(ErrorKind::kUsage, "OT1127",
                "the model has no floating-point output to differentiate");
  std::vector<Value> inputs;
  std::vector<ValueId> kept;
  size_t used = 0;
  for (ValueId v : g.inputs) {
    auto it = feeds.find(g.value_name(v));
    if (it == feeds.end()) {
      if (g.value(v).constant.defined()) continue;
      data_error("OT2113", cat("input '", g.value_name(v), "' was not given"),
                 cat("add an array '", g.value_name(v), "' to --inputs in.npz"));
    }
    check_feed(g.value(v), it->second);
    g.value(v).constant = Tensor();
    inputs.push_back(it->second);
    kept.push_back(v);
    ++used;
  }
  if (used != feeds.size())
    for (const auto& [name, value] : feeds)
      if (std::none_of(kept.begin(), kept.end(),
                       [&, &fed = name](ValueId v) { return g.value_name(v) == fed; }))
        unknown_feed(name, model.input_names());
  g.inputs = kept;
  Node n;
  n.op = "Gradient";
  n.domain = kTrainingDomain;
  n.version = 1;
  n.name = "onnxtrain.gradients";
  for (const auto& name : request.wrt) n.inputs.push_back(tensor_named(g, name));
  for (size_t k = 0; k < request.wrt.size(); ++k) {
    const TypeInfo& t = g.value(n.inputs[k]).type;
    if (t.is_tensor() && t.elem != DType::kUndefined && !dtype_is_differentiable(t.elem))
      throw Error(ErrorKind::kUsage, "OT1128",
                  cat("'", request.wrt[k], "' is ", to_string(t),
                      ": there is no gradient with respect to it"));
  }
  std::vector<ValueId> xs = n.inputs;
  n.inputs.insert(n.inputs.end(), xs.begin(), xs.end());
  n.inputs.push_back(weighted_sum(g, request, of));
  n.attrs["xs"] = request.wrt;
  n.attrs["y"] = std::string("onnxtrain.gradients");
  n.attrs["resolved"] = int64_t(1);
  g.outputs = g.add_node(std::move(n), int(request.wrt.size()), "onnxtrain.gradient");
  int threads = thread_count(options.threads);
  Program p(std::move(g), {}, std::make_shared<State>(), std::make_shared<ThreadPool>(threads),
            options);
  std::vector<Value> values = p.run(inputs, 0, 0);
  std::vector<NamedValue> out;
  for (size_t k = 0; k < values.size(); ++k) out.emplace_back(request.wrt[k], values[k]);
  return out;
}

}  // namespace onnxtrain
