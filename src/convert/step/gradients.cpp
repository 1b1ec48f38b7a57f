// From the loss to the gradients that the optimizer sees.
#include "convert/step/gradients.hpp"

#include <algorithm>

namespace onnxtrain {

namespace {

// Data inputs (of main and of the algorithm) that the loss depends on.
std::vector<ValueId> inputs_behind(StepBuilder& s, ValueId loss) {
  const Graph& g = s.graph();
  const Graph& m = s.main();
  std::vector<char> here(g.values.size(), 0), there(m.values.size(), 0);
  here[size_t(loss)] = 1;
  for (size_t k = g.nodes.size(); k-- > 0;) {
    bool any = false;
    for (ValueId v : g.nodes[k].outputs) any |= v != kNone && here[size_t(v)];
    if (any)
      for (ValueId v : g.reads(g.nodes[k])) here[size_t(v)] = 1;
  }
  for (const auto& c : g.captures)
    if (here[size_t(c.inner)]) there[size_t(c.outer)] = 1;
  for (size_t k = m.nodes.size(); k-- > 0;) {
    bool any = false;
    for (ValueId v : m.nodes[k].outputs) any |= v != kNone && there[size_t(v)];
    if (any)
      for (ValueId v : m.reads(m.nodes[k])) there[size_t(v)] = 1;
  }
  std::vector<ValueId> list;
  for (ValueId v : m.inputs)
    if (there[size_t(v)] && !m.value(v).constant.defined()) list.push_back(s.from_main(v));
  for (ValueId v : s.graph().inputs)
    if (here[size_t(v)]) list.push_back(v);
  return list;
}

DType elem(StepBuilder& s, ValueId v) { return s.graph().value(v).type.elem; }

}  // namespace

void add_gradient(StepBuilder& s, ValueId loss, std::vector<Trained>& parameters) {
  Node n;
  n.domain = std::string(kTrainingDomain);
  n.op = "Gradient";
  n.version = 1;
  n.name = "gradient";
  std::vector<std::string> xs, zs;
  for (const Trained& p : parameters) {
    n.inputs.push_back(p.weights);
    xs.push_back(p.name);
  }
  for (ValueId v : inputs_behind(s, loss)) {
    n.inputs.push_back(v);
    zs.push_back(s.graph().value_name(v));
  }
  n.attrs["xs"] = xs;
  if (!zs.empty()) n.attrs["zs"] = zs;
  n.attrs["y"] = s.graph().value_name(loss);
  std::vector<ValueId> out = s.graph().add_node(std::move(n), int(parameters.size()));
  for (size_t k = 0; k < parameters.size(); ++k) {
    s.set_type(out[k], s.graph().value(parameters[k].weights).type);
    s.rename(out[k], parameters[k].name + "_grad");
    parameters[k].gradient = out[k];
  }
}

Accumulation add_accumulation(StepBuilder& s, const Recipe& r, std::vector<Trained>& parameters) {
  Accumulation a;
  if (r.accumulate <= 1) return a;
  GradBuilder& b = s.nodes();
  ValueId count = s.add_state("accumulated_steps", Tensor::scalar<int64_t>(0));
  ValueId next = b.add(count, b.constant_int(1));
  a.updates = b.call("Equal", {next, b.constant_int(r.accumulate)});
  ValueId wrapped = b.call("Where", {a.updates, b.constant_int(0), next});
  s.bind(s.graph().value_name(count), wrapped);
  for (Trained& p : parameters) {
    const TypeInfo type = s.graph().value(p.weights).type;
    const Tensor* w = s.model().initializer(p.name);
    ValueId sum = s.add_state(p.name + ".accumulated", filled(w->dtype(), w->shape(), 0));
    ValueId total = b.add(sum, p.gradient);
    s.set_type(total, type);
    ValueId kept = b.call("Where", {a.updates, b.tensor(scalar_tensor(0, type.elem)), total});
    s.set_type(kept, type);
    s.bind(s.graph().value_name(sum), kept);
    p.gradient = b.div(total, b.tensor(scalar_tensor(r.accumulate, type.elem)));
    s.set_type(p.gradient, type);
  }
  return a;
}

void only_every(StepBuilder& s, const Accumulation& a, size_t first) {
  if (a.updates == kNone) return;
  for (size_t k = first; k < s.bindings().size(); ++k) {
    auto [key, next] = s.bindings()[k];
    ValueId old = s.graph().find(key);
    OT_ASSERT(old != kNone);
    const TypeInfo type = s.graph().value(old).type;
    ValueId v = s.nodes().call("Where", {a.updates, next, old});
    s.set_type(v, type);
    s.set_bound(k, v);
  }
}

void clip_gradients(StepBuilder& s, const Recipe& r, std::vector<Trained>& parameters) {
  GradBuilder& b = s.nodes();
  auto keep_type = [&](Trained& p, ValueId v) {
    s.set_type(v, s.graph().value(p.weights).type);
    p.gradient = v;
  };
  if (r.clip_value > 0)
    for (Trained& p : parameters) {
      DType t = elem(s, p.weights);
      keep_type(p, b.call("Clip", {p.gradient, b.tensor(scalar_tensor(-r.clip_value, t)),
                                   b.tensor(scalar_tensor(r.clip_value, t))}));
    }
  if (r.clip_norm <= 0) return;
  // the norm of the norms, as PyTorch computes it; scale = min(1, max_norm / (norm + 1e-6))
  DType t = elem(s, parameters[0].weights);
  if (t != DType::kDouble) t = DType::kFloat;
  std::vector<ValueId> squares;
  for (Trained& p : parameters) {
    ValueId g = s.cast(p.gradient, t);
    ValueId sum = b.call("ReduceSumSquare", {g}, {{"keepdims", int64_t(0)}});
    s.set_type(sum, TypeInfo::tensor(t, {}));
    squares.push_back(sum);
  }
  ValueId total = squares[0];
  for (size_t k = 1; k < squares.size(); ++k) total = b.add(total, squares[k]);
  ValueId norm = b.call("Sqrt", {total});
  ValueId scale =
      b.div(b.tensor(scalar_tensor(r.clip_norm, t)), b.add(norm, b.tensor(scalar_tensor(1e-6, t))));
  scale = b.call("Min", {scale, b.tensor(scalar_tensor(1, t))});
  s.set_type(norm, TypeInfo::tensor(t, {}));
  s.set_type(scale, TypeInfo::tensor(t, {}));
  for (Trained& p : parameters) keep_type(p, b.mul(p.gradient, s.cast(scale, elem(s, p.weights))));
}

std::vector<std::string> trained_names(const std::vector<Trained>& parameters) {
  std::vector<std::string> names;
  for (const Trained& p : parameters) names.push_back(p.name);
  return names;
}

}  // namespace onnxtrain
