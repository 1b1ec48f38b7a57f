// The training-mode copy of a model.
#include "convert/step/training_mode.hpp"

#include <algorithm>

#include "model/training_copies.hpp"

namespace onnxtrain {

namespace {

// The name of a copy, for people.
std::string copy_name(const std::string& name) { return name + "_train"; }

// Dropout that does nothing in training either is no reason for a copy.
bool is_active_dropout(const Graph& g, const Node& n) {
  if (n.version < 12) return n.f("ratio", 0.5f) > 0;
  if (n.inputs.size() < 2 || n.inputs[1] == kNone) return true;
  const Tensor& t = g.value(n.inputs[1]).constant;
  return !t.defined() || t.to_doubles()[0] > 0;
}

// A Dropout node with these inputs in training mode.
void switch_dropout(Graph& g, Node& n, int opset) {
  if (n.version < 12) {
    float ratio = n.f("ratio", 0.5f);
    n.attrs.clear();
    n.inputs.resize(1);
    n.inputs.push_back(g.add_constant(Tensor::scalar<float>(ratio)));
    n.version = opset;
  }
  n.inputs.resize(3, kNone);
  n.inputs[2] = g.add_constant(Tensor::scalar<bool>(true));
}

using Bodies = std::vector<GraphPtr*>;
Bodies bodies_of(Node& n) {
  Bodies out;
  for (auto& [key, a] : n.attrs)
    if (GraphPtr* sub = std::get_if<GraphPtr>(&a)) out.push_back(sub);
  return out;
}

// Is there something in the node's bodies that behaves differently in training?
bool has_mode_inside(const Node& n) {
  for (const auto& [key, a] : n.attrs)
    if (const GraphPtr* sub = std::get_if<GraphPtr>(&a))
      for (const Node& inner : (*sub)->nodes)
        if (is_batch_norm(inner) || (is_dropout(inner) && is_active_dropout(**sub, inner)) ||
            has_mode_inside(inner))
          return true;
  return false;
}

// Stored in the body, or captured from outside: a value that nothing in the body computes.
bool has_statistics_inside(const Graph& body, const Node& n) {
  if (n.inputs.size() < 5) return false;
  return body.value(n.inputs[3]).producer < 0 && body.value(n.inputs[4]).producer < 0;
}

// Dropout in bodies switched to training. BatchNormalization there has no place for its running
// statistics: only a frozen one may stay as it is.
void switch_bodies(Node& n, const Recipe& r, int opset) {
  for (GraphPtr* sub : bodies_of(n)) {
    auto body = std::make_shared<Graph>((*sub)->clone());
    for (Node& inner : body->nodes) {
      auto trained = [&](ValueId v) { return is_chosen(r, body->value_name(v)); };
      if (is_batch_norm(inner) && has_statistics_inside(*body, inner) &&
          (trained(inner.inputs[1]) || trained(inner.inputs[2])))
        model_error("OT1248",
                    cat(inner.label(), " lies inside ", n.label(),
                        ": its running statistics cannot be trained there"),
                    cat("freeze it:  --freeze '", body->value_name(inner.inputs[1]), "' --freeze '",
                        body->value_name(inner.inputs[2]),
                        "', or differentiate the graph as written:  mode as_is"));
      if (is_dropout(inner) && is_active_dropout(*body, inner)) switch_dropout(*body, inner, opset);
      switch_bodies(inner, r, opset);
    }
    *sub = body;
  }
}

// Statistics that are computed are arithmetic, not running statistics: such a layer stays as it is
// written.
bool has_stored_statistics(const Graph& g, const Node& n) {
  return n.inputs.size() >= 5 && g.value(n.inputs[3]).constant.defined() &&
         g.value(n.inputs[4]).constant.defined();
}

// Scale and bias frozen by the user: the layer stays in inference mode.
bool is_frozen(const Graph& g, const Node& n, const Recipe& r) {
  if (r.freeze.empty() && r.only.empty()) return false;
  for (size_t i = 1; i <= 2; ++i)
    if (!g.value(n.inputs[i]).initializer || is_chosen(r, g.value_name(n.inputs[i]))) return false;
  return true;
}

Node copy_node(StepBuilder& s, const Node& n) {
  Node c = n;
  c.name = n.name.empty() ? std::string() : copy_name(n.name);
  c.outputs.clear();
  for (ValueId& v : c.inputs) v = s.from_main(v);
  for (auto& [key, a] : c.attrs)
    if (GraphPtr* sub = std::get_if<GraphPtr>(&a)) {
      auto copy = std::make_shared<Graph>((*sub)->clone());
      for (auto& cap : copy->captures) cap.outer = s.from_main(cap.outer);
      *sub = copy;
    }
  return c;
}

// Adds the node with the outputs of `n`, named after them.
void add_copy(StepBuilder& s, const Node& n, Node copy, size_t outputs) {
  Graph& g = s.graph();
  std::vector<ValueId> made = g.add_node(std::move(copy), int(outputs));
  for (size_t k = 0; k < outputs; ++k) {
    ValueId old = k < n.outputs.size() ? n.outputs[k] : kNone;
    if (old == kNone) continue;
    s.rename(made[k], copy_name(s.main().value_name(old)));
    s.set_type(made[k], s.main().value(old).type);
    s.set_training_copy(old, made[k]);
  }
  // outputs that the node leaves out stay out
  for (size_t k = 0; k < outputs && k < n.outputs.size(); ++k)
    if (n.outputs[k] == kNone) g.nodes.back().outputs[k] = kNone;
}

void copy_dropout(StepBuilder& s, const Node& n) {
  Node c = copy_node(s, n);
  switch_dropout(s.graph(), c, s.opset());
  add_copy(s, n, std::move(c), n.outputs.size());
}

// running variance by PyTorch's rule: the operator gives r = m*old + (1-m)*var with the population
// variance; r*c - m*old*(c-1) has var*c instead, c = n/(n-1).
ValueId unbiased(StepBuilder& s, ValueId x, ValueId scale, ValueId old, ValueId r,
                 double momentum) {
  GradBuilder& b = s.nodes();
  const DType type = s.graph().value(old).type.elem;
  // 16-bit types cannot count the elements
  const DType t = type == DType::kDouble ? type : DType::kFloat;
  old = s.cast(old, t), r = s.cast(r, t);
  ValueId size = s.cast(b.call("Size", {x}), t), channels = s.cast(b.call("Size", {scale}), t);
  ValueId n = b.div(size, channels), one = b.tensor(scalar_tensor(1, t));
  ValueId c = b.div(n, b.call("Max", {b.sub(n, one), one}));
  ValueId kept = b.mul(old, b.tensor(scalar_tensor(momentum, t)));
  return s.cast(b.sub(b.mul(r, c), b.mul(kept, b.sub(c, one))), type);
}

void copy_batch_norm(StepBuilder& s, const Recipe& r, const Node& n) {
  const Graph& m = s.main();
  Node c = copy_node(s, n);
  double momentum = double(n.f("momentum", 0.9f));
  std::string keys[2];
  for (size_t k = 0; k < 2; ++k) {
    ValueId v = n.inputs[3 + k];
    keys[k] = m.value_name(v);
    if (!m.value(v).initializer) s.model().edit_main();  // a Constant node becomes an initializer
    // two layers may share their statistics: the second continues from the first
    if (ValueId before = s.bound(keys[k]); before != kNone) c.inputs[3 + k] = before;
  }
  size_t outputs = 3;
  if (n.version >= 14) {
    c.attrs["training_mode"] = int64_t(1);
  } else {
    outputs = 5;  // older forms train when all five are there
    c.attrs.erase("is_test");
  }
  std::vector<ValueId> old = {c.inputs[3], c.inputs[4]};
  ValueId x = c.inputs[0], scale = c.inputs[1];
  Node first_only = n;
  first_only.outputs = {n.outputs[0]};
  add_copy(s, first_only, std::move(c), outputs);
  std::vector<ValueId> made = s.graph().nodes.back().outputs;
  for (size_t k = 0; k < 2; ++k) {
    TypeInfo type = m.value(n.inputs[3 + k]).type;
    s.set_type(made[1 + k], type);
    if (outputs == 5) s.set_type(made[3 + k], type);
    ValueId next = made[1 + k];
    if (k == 1 && r.bn_variance == "torch") next = unbiased(s, x, scale, old[1], next, momentum);
    s.set_type(next, type);
    s.bind(keys[k], next);
  }
}

}  // namespace

namespace {

// The inference form of a graph; statistics that are not computed any more go to `gone`.
bool to_inference(Graph& g, std::vector<ValueId>& gone, const Node* around) {
  bool changed = false;
  for (Node& n : g.nodes) {
    for (GraphPtr* sub : bodies_of(n)) {
      auto body = std::make_shared<Graph>((*sub)->clone());
      std::vector<ValueId> inner;
      if (!to_inference(*body, inner, &n)) continue;
      *sub = body;
      changed = true;
    }
    if (!in_training_form(g, n)) continue;
    if (around && is_batch_norm(n))
      model_error("OT1248",
                  cat(n.label(), " in training form lies inside ", around->label(),
                      ": its running statistics cannot be trained there"),
                  "export the model in inference mode, or use mode as_is");
    changed = true;
    if (is_batch_norm(n)) {
      n.attrs.erase("training_mode");
      if (n.version < 7) n.attrs["is_test"] = int64_t(1);
    } else if (n.version >= 12) {
      n.inputs.resize(2);
      if (n.inputs[1] == kNone) n.inputs.resize(1);
    } else {
      n.attrs["is_test"] = int64_t(1);
    }
    if (is_batch_norm(n)) {
      for (size_t k = 1; k < n.outputs.size(); ++k)
        if (n.outputs[k] != kNone) gone.push_back(n.outputs[k]);
      n.outputs.resize(1);
    }
  }
  return changed;
}

}  // namespace

namespace {

bool to_inference_form(Graph& g) {
  std::vector<ValueId> gone;
  if (!to_inference(g, gone, nullptr)) return false;
  // statistics as outputs of the model belong to training: they become bindings
  for (ValueId v : gone) {
    for (const Node& n : g.nodes)
      for (ValueId x : g.reads(n))
        if (x == v)
          model_error("OT1241",
                      cat("statistics '", g.value_name(v),
                          "' of a BatchNormalization in training form are read by ", n.label()),
                      "export the model in inference mode, or use mode as_is");
    std::erase(g.outputs, v);
  }
  g.renumber();
  if (g.outputs.empty())
    model_error("OT1236", "the model has no outputs, there is nothing to train",
                "add an output to the graph: model.graph.output in the onnx package");
  return true;
}

}  // namespace

bool make_inference_form(Model& m) { return m.edit_main_if(to_inference_form); }

void add_training_copy(StepBuilder& s, const Recipe& r, const std::vector<ValueId>& needed,
                       const std::vector<ValueId>&) {
  const Graph& g = s.main();
  std::vector<char> wanted(g.values.size(), 0), affected(g.values.size(), 0);
  for (ValueId v : needed) wanted[size_t(v)] = 1;
  std::vector<char> take(g.nodes.size(), 0);
  for (size_t k = g.nodes.size(); k-- > 0;) {
    const Node& n = g.nodes[k];
    for (ValueId v : n.outputs) take[k] |= v != kNone && wanted[size_t(v)];
    if (take[k])
      for (ValueId v : g.reads(n)) wanted[size_t(v)] = 1;
  }
  for (ValueId v : g.inputs) affected[size_t(v)] = s.has_training_copy(v);  // augmented
  size_t count = g.nodes.size();
  for (size_t k = 0; k < count; ++k) {
    if (!take[k]) continue;
    const Node n = g.nodes[k];
    bool norm = is_batch_norm(n) && has_stored_statistics(g, n) && !is_frozen(g, n, r);
    bool dropout = is_dropout(n) && is_active_dropout(g, n);
    bool inside = has_mode_inside(n), any = norm || dropout || inside;
    for (ValueId v : g.reads(n)) any |= affected[size_t(v)] != 0;
    if (!any) continue;
    for (ValueId v : n.outputs)
      if (v != kNone) affected[size_t(v)] = 1;
    if (norm) {
      copy_batch_norm(s, r, n);
    } else if (dropout) {
      copy_dropout(s, n);
    } else {
      Node copy = copy_node(s, n);
      if (inside) switch_bodies(copy, r, s.opset());
      add_copy(s, n, std::move(copy), n.outputs.size());
    }
  }
}

}  // namespace onnxtrain
