// Gradient nodes expanded, our own operators replaced by standard ones unless they are functions.
#include "convert/lower.hpp"

#include <algorithm>
#include <map>

#include "autodiff/autodiff.hpp"
#include "autodiff/sequences.hpp"
#include "convert/step/step_builder.hpp"
#include "graph/reads.hpp"
#include "op/identity_node.hpp"
#include "op/needs_shape.hpp"

namespace onnxtrain {

namespace {

// Main graph and algorithm as one graph with fresh name counts.
struct Joined {
  Graph g;
  size_t main_values = 0, main_nodes = 0;
  std::vector<ValueId> to;  // algorithm -> joined
};

void remap(Node& n, const std::vector<ValueId>& to) {
  auto map = [&](ValueId v) { return v == kNone ? kNone : to[size_t(v)]; };
  for (ValueId& v : n.inputs) v = map(v);
  for (ValueId& v : n.outputs) v = map(v);
  for (auto& [key, a] : n.attrs)
    if (GraphPtr* sub = std::get_if<GraphPtr>(&a)) {
      auto copy = std::make_shared<Graph>((*sub)->clone());
      for (auto& c : copy->captures) c.outer = map(c.outer);
      *sub = copy;
    }
}

Joined join(const Graph& main, const Graph& algorithm) {
  Joined j;
  j.g.name = main.name;
  j.g.values = main.values;
  j.g.nodes = main.clone().nodes;
  j.g.inputs = main.inputs;
  j.g.outputs = main.outputs;
  j.main_values = main.values.size();
  j.main_nodes = main.nodes.size();
  j.to.assign(algorithm.values.size(), kNone);
  for (const auto& c : algorithm.captures) j.to[size_t(c.inner)] = c.outer;
  for (size_t k = 0; k < algorithm.values.size(); ++k)
    if (j.to[k] == kNone) {
      j.to[k] = ValueId(j.g.values.size());
      j.g.values.push_back(algorithm.values[k]);
    }
  for (Node n : algorithm.nodes) {
    remap(n, j.to);
    j.g.nodes.push_back(std::move(n));
  }
  j.g.renumber();
  return j;
}

// The inverse: what is not the main graph's becomes the algorithm again.
Graph split(const Joined& j, const Graph& before) {
  Graph a;
  a.name = before.name;
  std::vector<ValueId> to(j.g.values.size(), kNone);
  auto bring = [&](ValueId v) {
    if (v == kNone || to[size_t(v)] != kNone) return;
    to[size_t(v)] = ValueId(a.values.size());
    a.values.push_back(j.g.values[size_t(v)]);
    if (size_t(v) < j.main_values) a.captures.push_back({v, to[size_t(v)]});
  };
  for (ValueId v : before.inputs) bring(j.to[size_t(v)]);
  for (size_t k = j.main_nodes; k < j.g.nodes.size(); ++k) {
    for (ValueId v : j.g.reads(j.g.nodes[k])) bring(v);
    for (ValueId v : j.g.nodes[k].outputs) bring(v);
  }
  for (ValueId v : before.outputs) bring(j.to[size_t(v)]);
  for (size_t k = j.main_nodes; k < j.g.nodes.size(); ++k) {
    Node n = j.g.nodes[k];
    remap(n, to);
    a.nodes.push_back(std::move(n));
  }
  for (ValueId v : before.inputs) a.inputs.push_back(to[size_t(j.to[size_t(v)])]);
  for (ValueId v : before.outputs) a.outputs.push_back(to[size_t(j.to[size_t(v)])]);
  a.renumber();
  return a;
}

bool is_optimizer(const Node& n) { return n.domain == kTrainingDomain && n.op != "Gradient"; }

// Replaces nodes of our own domain; true if one was there. Outputs keep their numbers through
// Identity.
bool replace_own(Graph& g, const OpTable& ops, int opset) {
  bool any = false;
  std::vector<Node> old = std::move(g.nodes);
  g.nodes.clear();
  for (Node& n : old) {
    for (auto& [key, a] : n.attrs)
      if (GraphPtr* sub = std::get_if<GraphPtr>(&a)) {
        auto copy = std::make_shared<Graph>((*sub)->clone());
        if (replace_own(*copy, ops, opset)) any = true, *sub = copy;
      }
    if (n.is("Gradient", kTrainingDomain))
      model_error("OT1247", cat("cannot lower ", n.label(), ": it lies inside a branch or a loop"),
                  "prepare the model without --lowered");
    const Op* op = n.domain == kOwnDomain || is_optimizer(n) ? ops.find(n) : nullptr;
    bool norm = is_training_norm(n);
    bool keep = n.domain == kOwnDomain ? op && op->function : !is_optimizer(n) && !norm;
    if (keep) {
      g.nodes.push_back(std::move(n));
      continue;
    }
    if (n.is("DeferredGradient", kOwnDomain)) needs_shape("OT1205", n.s("why", ""));
    if (!norm && (!op || !op->lower))
      model_error("OT1247",
                  cat("cannot lower ", n.label(), ": it has no form in standard operators"),
                  "prepare the model without --lowered");
    any = true;
    GradBuilder b(g, ops, n, {}, opset);
    b.set_differentiate(&differentiate);
    std::vector<ValueId> made;
    try {
      made = norm ? lower_training_norm(b) : op->lower(b);
    } catch (Error& e) {
      e.add_place("while lowering " + n.label());
      throw;
    }
    for (size_t k = 0; k < n.outputs.size(); ++k) {
      if (n.outputs[k] == kNone) continue;
      OT_ASSERT(k < made.size() && made[k] != kNone);
      TypeInfo& t = g.value(n.outputs[k]).type;
      const TypeInfo& found = g.value(made[k]).type;
      if ((!t.is_tensor() || !t.shape) && found.kind != TypeInfo::Kind::kUnknown) t = found;
      g.nodes.push_back(identity_node(g, made[k], n.outputs[k], opset));
    }
  }
  g.renumber();
  return any;
}

// Rules may put another node in the place of a forward one (a recurrent layer or a loop that keeps
// what its gradient needs). The main graph must stay: such nodes move behind it, with results of
// their own.
void restore_main(Joined& j, const Graph& main) {
  Graph& g = j.g;
  auto is_original = [&](const Node& n) {
    for (ValueId v : n.outputs) {
      if (v == kNone) continue;
      if (size_t(v) >= j.main_values) return false;
      NodeId p = main.value(v).producer;
      if (p < 0) return false;
      const Node& m = main.nodes[size_t(p)];
      return m.op == n.op && m.domain == n.domain && m.outputs == n.outputs;
    }
    return false;
  };
  std::vector<Node> old = std::move(g.nodes);
  g.nodes = main.clone().nodes;
  std::map<ValueId, ValueId> to;
  auto map = [&](ValueId& v) {
    if (auto it = to.find(v); it != to.end()) v = it->second;
  };
  for (Node& n : old) {
    if (is_original(n)) continue;
    for (ValueId& v : n.inputs) map(v);
    for (auto& [key, a] : n.attrs)
      if (GraphPtr* sub = std::get_if<GraphPtr>(&a))
        for (auto& c : (*sub)->captures) map(c.outer);
    for (ValueId& v : n.outputs) {
      if (v == kNone || size_t(v) >= j.main_values) continue;
      TypeInfo type = g.value(v).type;
      ValueId fresh = g.add_value(g.unique_name(g.value_name(v) + "_train"), type);
      g.value(fresh).inference_form = v;
      to[v] = fresh;
      v = fresh;
    }
    g.nodes.push_back(std::move(n));
  }
  g.renumber();
}

// Reads go past Identity nodes; those that only rename an output stay. What is said of the result
// is said of the operand then.
void skip_identities(Graph& g, size_t from, const std::vector<ValueId>& outputs) {
  g.renumber();
  std::vector<ValueId> to(g.values.size());
  for (size_t k = 0; k < to.size(); ++k) to[k] = ValueId(k);
  for (size_t k = from; k < g.nodes.size(); ++k) {
    Node& n = g.nodes[k];
    for (ValueId& v : n.inputs)
      if (v != kNone) v = to[size_t(v)];
    for (auto& [key, a] : n.attrs)
      if (GraphPtr* sub = std::get_if<GraphPtr>(&a))
        for (auto& c : (*sub)->captures) c.outer = to[size_t(c.outer)];
    if (!n.is("Identity")) continue;
    to[size_t(n.outputs[0])] = n.inputs[0];
    ValueDef& operand = g.value(n.inputs[0]);
    if (operand.producer >= NodeId(from) && operand.inference_form == kNone)
      operand.inference_form = g.value(n.outputs[0]).inference_form;
  }
  g.outputs = outputs;
  // the main graph's nodes stay whatever happens
  std::vector<ValueId> keep;
  for (size_t k = 0; k < from; ++k)
    for (ValueId v : g.nodes[k].outputs)
      if (v != kNone) keep.push_back(v);
  g.remove_dead(keep);
}

// Does the graph draw random numbers? Dropout without a training mode does not.
const Node* random_inside(const Graph& g, const OpTable& ops) {
  for (const Node& n : g.nodes) {
    const Op* op = ops.find(n);
    bool idle = n.is("Dropout") && (n.inputs.size() < 3 || n.inputs[2] == kNone);
    if (op && op->random && !idle) return &n;
    for (const auto& [key, a] : n.attrs)
      if (const GraphPtr* sub = std::get_if<GraphPtr>(&a))
        if (const Node* found = random_inside(**sub, ops)) return found;
  }
  return nullptr;
}

// The backward pass of a branch or a loop runs its body again. A runtime draws other random numbers
// then, so the gradient would not be that of the loss.
void refuse_repeated_draws(const Graph& g, const OpTable& ops) {
  for (const Node& n : g.nodes) {
    if (n.random_stream == 0) continue;
    for (const auto& [key, a] : n.attrs)
      if (const GraphPtr* sub = std::get_if<GraphPtr>(&a))
        if (const Node* r = random_inside(**sub, ops))
          model_error("OT1247",
                      cat("cannot lower ", n.label(), ": it would have to draw the random numbers ",
                          "of ", r->label(), " a second time"),
                      "prepare the model without --lowered");
  }
}

void lower_step(Model& m, TrainingStep& step, const OpTable& ops, int opset) {
  Joined j = join(m.main, step.algorithm);
  resolve_gradients(j.g);
  std::vector<ValueId> data;
  for (ValueId v : step.algorithm.inputs) data.push_back(j.to[size_t(v)]);
  std::vector<ValueId> known = settle_types(j.g, j.main_nodes, data, ops);
  if (open_sequences(j.g, ops)) {
    std::vector<ValueId> more = settle_types(j.g, 0, data, ops);
    known.insert(known.end(), more.begin(), more.end());
  }
  expand_gradients(j.g, ops, opset);
  while (replace_own(j.g, ops, opset)) {
  }
  refuse_repeated_draws(j.g, ops);
  for (ValueId v : known) j.g.value(v).constant = {};
  restore_main(j, m.main);
  std::vector<ValueId> outputs;
  for (ValueId v : step.algorithm.outputs) outputs.push_back(j.to[size_t(v)]);
  skip_identities(j.g, j.main_nodes, outputs);
  j.g.verify("lowering");
  Graph& lowered = step.edit_algorithm();
  lowered = split(j, Graph(step.algorithm));
  name_nodes(m.main, lowered);
  lowered.verify("lowering");
}

}  // namespace

// Nodes of the backward pass need operators of this opset; prepare brings older files to it.
constexpr int kOldest = 13;

Model lower(const Model& source, const OpTable& ops) {
  Model m = source;
  auto it = m.opsets.find("");
  int opset = it == m.opsets.end() ? kOldest : it->second;
  if (opset < kOldest)
    model_error(
        "OT1247",
        cat("cannot lower a file of opset ", opset,
            ": it holds an operator that means something else in opset ", kOldest, " and later"),
        "prepare the model without --lowered");
  for (TrainingStep& t : m.training) lower_step(m, t, ops, opset);
  m.opsets.erase(std::string(kTrainingDomain));
  m.metadata["onnxtrain.lowered"] = "1";
  m.mark_state();
  return m;
}

Model flatten_step(const Model& m, int which) {
  const TrainingStep& step = m.training.at(size_t(which));
  Joined j = join(m.main, step.algorithm);
  Model out = m;
  out.training.clear();
  out.metadata.erase("onnxtrain.rate");
  Graph& g = j.g;
  g.name = step.algorithm.name;
  g.outputs.clear();
  for (ValueId v : step.algorithm.outputs) g.outputs.push_back(j.to[size_t(v)]);
  std::vector<ValueId> assigned;  // may be outputs of the main graph (ruling G2)
  for (const auto& [key, value] : step.update_binding)
    if (const ValueId v = g.find(value); v != kNone) assigned.push_back(v);
  g.remove_dead(assigned);
  const std::vector<char> read = values_read(g);
  std::vector<ValueId> inputs;
  for (ValueId v : m.main.inputs)
    if (read[size_t(v)] && !g.value(v).constant.defined()) inputs.push_back(v);
  for (ValueId v : step.algorithm.inputs) inputs.push_back(j.to[size_t(v)]);
  std::vector<std::string> names = m.state_names();
  if (auto it = m.metadata.find("onnxtrain.rate"); it != m.metadata.end())
    names.push_back(it->second);
  for (size_t k = 0; k < g.values.size(); ++k) {
    ValueDef& d = g.values[k];
    bool is_state =
        d.constant.defined() && std::find(names.begin(), names.end(), d.name) != names.end();
    d.state.clear();
    if (!is_state || !read[k]) continue;
    d.constant = {};
    d.initializer = false;
    inputs.push_back(ValueId(k));
  }
  g.inputs = inputs;
  out.edit_main() = std::move(g);
  return out;
}

}  // namespace onnxtrain
