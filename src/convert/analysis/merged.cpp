// What exporters do to weights, undone: equal ones merged, tied ones copied, all of them written as
// Constant nodes, initializers inside branches and loops.
#include <algorithm>
#include <cstring>

#include "convert/analysis/attribute_weights.hpp"
#include "convert/step/training_mode.hpp"

namespace onnxtrain {

namespace {

bool is_weight_like(const ValueDef& d) {
  return d.constant.defined() && dtype_is_differentiable(d.constant.dtype());
}

// "layers.1.norm.weight" but neither "onnx::MatMul_421" nor "/layers.1/Identity_output_0" nor "37".
bool is_parameter_name(const std::string& name) {
  if (name.empty() || has_generated_name(name) || name.find('/') != std::string::npos) return false;
  return name.find("_output_") == std::string::npos;
}

void keep_nodes(Graph& g, const std::vector<char>& gone) {
  std::vector<Node> kept;
  for (size_t k = 0; k < g.nodes.size(); ++k)
    if (!gone[k]) kept.push_back(std::move(g.nodes[k]));
  g.nodes = std::move(kept);
  g.renumber();
}

bool is_transpose(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.rank() != 2 || b.rank() != 2) return false;
  int64_t rows = a.shape()[0], cols = a.shape()[1];
  if (b.shape()[0] != cols || b.shape()[1] != rows) return false;
  size_t size = dtype_size(a.dtype());
  const char *p = static_cast<const char*>(a.data()), *q = static_cast<const char*>(b.data());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j)
      if (std::memcmp(p + size_t(i * cols + j) * size, q + size_t(j * rows + i) * size, size) != 0)
        return false;
  return true;
}

bool is_copy(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.rank() == 2 && a.shape() == b.shape() &&
         std::memcmp(a.data(), b.data(), size_t(a.size()) * dtype_size(a.dtype())) == 0;
}

// Makes the initializer `b` the transpose of `a` again.
void compute_by_transpose(Graph& g, ValueId a, ValueId b, int opset) {
  ValueDef& d = g.value(b);
  d.constant = {};
  d.initializer = false;
  Node n;
  n.op = "Transpose";
  n.version = opset;
  n.name = d.name + "_tied";
  n.attrs["perm"] = std::vector<int64_t>{1, 0};
  n.inputs = {a};
  n.outputs = {b};
  g.nodes.insert(g.nodes.begin(), std::move(n));
  g.renumber();
}

}  // namespace

namespace {

bool separate_merged(Graph& g) {
  std::vector<char> statistics = running_statistics(g), found(g.nodes.size(), 0);
  auto source = [&](const Node& n) { return g.value(n.inputs[0]); };
  auto merges = [&](const Node& n) {
    if (!n.is("Identity")) return false;
    const ValueDef d = source(n);
    return d.initializer && is_weight_like(d);
  };
  bool cloned = false;  // layers that started as copies of each other
  for (size_t k = 0; k < g.nodes.size(); ++k) {
    const Node& n = g.nodes[k];
    if (!merges(n)) continue;
    const ValueDef d = source(n);
    bool statistic = statistics[size_t(n.outputs[0])] || statistics[size_t(n.inputs[0])];
    bool uniform = d.constant.rank() >= 1 && all_equal(d.constant);
    bool named = is_parameter_name(d.name) && is_parameter_name(g.value_name(n.outputs[0]));
    found[k] = statistic || uniform || named;
    cloned |= named && !uniform && !statistic;
  }
  // folded weights lost their names: next to cloned layers they are clones, otherwise tied
  for (size_t k = 0; cloned && k < g.nodes.size(); ++k)
    if (merges(g.nodes[k])) found[k] = 1;
  if (std::none_of(found.begin(), found.end(), [](char f) { return f != 0; })) return false;
  for (size_t k = 0; k < g.nodes.size(); ++k) {
    if (!found[k]) continue;
    const Tensor value = source(g.nodes[k]).constant.clone();
    ValueDef& d = g.value(g.nodes[k].outputs[0]);
    d.constant = value;
    d.initializer = true;
    d.type = TypeInfo::tensor(value.dtype(), value.shape());
  }
  keep_nodes(g, found);
  return true;
}

bool tie_embeddings(Graph& g, int opset) {
  std::vector<ValueId> tables, heads;
  for (const Node& n : g.nodes) {
    bool table = n.is("Gather") && n.i("axis", 0) == 0;
    bool head = n.is("MatMul") || n.is("Gemm");
    if (!table && !head) continue;
    ValueId v = n.inputs[table ? 0 : 1];
    const ValueDef& d = g.value(v);
    if (!d.initializer || !is_weight_like(d) || d.constant.rank() != 2) continue;
    if (d.constant.size() < 2 || all_equal(d.constant)) continue;
    std::vector<ValueId>& list = table ? tables : heads;
    if (std::find(list.begin(), list.end(), v) == list.end()) list.push_back(v);
  }
  bool any = false;
  for (ValueId head : heads)
    for (ValueId table : tables) {
      if (head == table || !g.value(head).constant.defined()) continue;
      const Tensor a = g.value(table).constant, b = g.value(head).constant;
      bool is_input = std::find(g.inputs.begin(), g.inputs.end(), head) != g.inputs.end();
      if (is_input) continue;
      if (is_copy(a, b))
        g.replace_uses(head, table);
      else if (is_transpose(a, b))
        compute_by_transpose(g, table, head, opset);
      else
        continue;
      any = true;
      break;
    }
  return any;
}

bool has_initializer_weights(const Graph& g) {
  std::vector<char> statistics = running_statistics(g);
  for (size_t k = 0; k < g.values.size(); ++k)
    if (g.values[k].initializer && is_weight_like(g.values[k]) && !statistics[k] &&
        g.values[k].constant.rank() >= 1)
      return true;
  return false;
}

bool adopt_constants(Graph& g) {
  bool any = false;
  auto users = g.consumers();
  for (size_t k = 0; k < g.values.size(); ++k) {
    ValueDef& d = g.values[k];
    if (d.initializer || d.producer >= 0 || !is_weight_like(d) || d.constant.rank() < 1) continue;
    if (users[k].empty()) continue;
    d.initializer = true;
    any = true;
  }
  return any;
}

// A body whose result is a value from outside of it: ONNX Runtime wants a node between.
void give_by_a_node(Graph& body, ValueId v, int opset) {
  if (std::find(body.outputs.begin(), body.outputs.end(), v) == body.outputs.end()) return;
  Node n;
  n.op = "Identity";
  n.version = opset;
  n.inputs = {v};
  const ValueId same = body.add_node(std::move(n), 1, body.value_name(v))[0];
  body.value(same).type = body.value(v).type;
  std::replace(body.outputs.begin(), body.outputs.end(), v, same);
}

// Moves the weights among the initializers of the node's bodies out into `outer`; with `constants`
// those that nodes Constant hold too.
bool lift_weights(Graph& outer, Node& n, bool constants) {
  bool any = false;
  for (auto& [key, a] : n.attrs) {
    GraphPtr* sub = std::get_if<GraphPtr>(&a);
    if (!sub) continue;
    auto body = std::make_shared<Graph>((*sub)->clone());
    bool here = false;
    for (Node& inner : body->nodes) here |= lift_weights(*body, inner, constants);
    const auto users = body->consumers();
    for (size_t k = 0; k < body->values.size(); ++k) {
      const ValueId v = ValueId(k);
      ValueDef& d = body->value(v);
      if (d.producer >= 0 || !is_weight_like(d) || d.constant.rank() < 1) continue;
      if (!d.initializer && (!constants || k >= users.size() || users[k].empty())) continue;
      if (std::find(body->inputs.begin(), body->inputs.end(), v) != body->inputs.end()) continue;
      if (outer.find(d.name) != kNone) d.name = outer.unique_name(d.name);  // of another branch
      ValueId lifted = outer.add_constant(d.constant, d.name);
      outer.value(lifted).initializer = true;
      outer.value(lifted).type = TypeInfo::tensor(d.constant.dtype(), d.constant.shape());
      d.constant = {};
      d.initializer = false;
      body->captures.push_back({lifted, v});
      give_by_a_node(*body, v, n.version);
      here = true;
    }
    if (here) *sub = body;
    any |= here;
  }
  return any;
}

bool lift_weights(Graph& g, bool constants) {
  bool any = false;
  for (size_t k = 0; k < g.nodes.size(); ++k) {
    Node n = g.nodes[k];
    if (!lift_weights(g, n, constants)) continue;
    g.nodes[k] = std::move(n);
    any = true;
  }
  return any;
}

}  // namespace

bool separate_merged_initializers(Model& m) { return m.edit_main_if(separate_merged); }

bool tie_copied_embeddings(Model& m) {
  auto it = m.opsets.find("");
  const int opset = it == m.opsets.end() ? 13 : it->second;
  return m.edit_main_if([&](Graph& g) { return tie_embeddings(g, opset); });
}

bool adopt_constant_weights(Model& m) {
  return m.edit_main_if([](Graph& g) {
    if (has_initializer_weights(g)) return false;
    const bool here = adopt_constants(g);
    return lift_weights(g, true) || here;
  });
}

bool lift_body_weights(Model& m) {
  return m.edit_main_if([](Graph& g) { return lift_weights(g, false); });
}

void restore_parameters(Model& m) {
  adopt_attribute_weights(m, all_ops());
  lift_body_weights(m);
  adopt_constant_weights(m);
  separate_merged_initializers(m);
  tie_copied_embeddings(m);
}

}  // namespace onnxtrain
