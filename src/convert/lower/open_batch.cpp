// A batch size that an exporter wrote into the file, opened. The graph must carry the first
// dimension of its inputs through to its outputs for every size; nothing is changed otherwise.
#include <algorithm>

#include "convert/lower.hpp"
#include "convert/step/training_mode.hpp"
#include "model/batch.hpp"

namespace onnxtrain {

namespace {

std::string unused_symbol(const Graph& g) {
  for (const char* name : {"N", "batch", "rows", "batch_size"}) {
    bool used = false;
    for (const ValueDef& d : g.values)
      if (d.type.is_tensor() && d.type.shape)
        for (const Dim& x : *d.type.shape) used |= x.symbol == name;
    if (!used) return name;
  }
  return {};
}

// Which values follow from the data, its shape included.
std::vector<char> from_data(const Graph& g) {
  std::vector<char> is(g.values.size(), 0);
  for (ValueId v : g.inputs) is[size_t(v)] = !g.value(v).constant.defined();
  for (const Node& n : g.nodes) {
    bool any = false;
    for (ValueId v : g.reads(n)) any |= is[size_t(v)] != 0;
    for (ValueId v : n.outputs)
      if (v != kNone) is[size_t(v)] = any;
  }
  return is;
}

ValueId add_node(Graph& g, std::vector<Node>& nodes, const char* op, int opset,
                 std::vector<ValueId> inputs) {
  Node n;
  n.op = op;
  n.version = opset;
  n.name = g.unique_name(op);
  n.inputs = std::move(inputs);
  n.outputs = {g.add_value(g.unique_name(n.name), TypeInfo::tensor(DType::kInt64))};
  nodes.push_back(std::move(n));
  return nodes.back().outputs[0];
}

ValueId numbers(Graph& g, const std::vector<int64_t>& v, const std::string& name) {
  const ValueId made = g.add_constant(Tensor::vector<int64_t>(v), g.unique_name(name));
  g.value(made).type = TypeInfo::tensor(DType::kInt64, {int64_t(v.size())});
  return made;
}

// Targets that begin with the batch size, and that no data has a part in: Reshape finds the number
// out instead, Expand takes it from an input.
void open_targets(Graph& g, int64_t batch, int opset, const OpTable& ops) {
  Graph folded = g.clone();
  settle_types(folded, folded.nodes.size(), {}, ops);
  const std::vector<char> data = from_data(g);
  ValueId rows = kNone;  // [batch]
  std::vector<Node> old = std::move(g.nodes), nodes;
  for (Node& n : old) {
    const ValueId target = n.inputs.size() > 1 ? n.inputs[1] : kNone;
    const bool reshape = n.is("Reshape"), expand = n.is("Expand");
    if ((reshape || expand) && target != kNone && !data[size_t(target)]) {
      const Tensor& value = folded.value(target).constant;
      const TypeInfo& out = folded.value(n.outputs[0]).type;
      std::vector<int64_t> to;
      if (value.defined() && value.dtype() == DType::kInt64) to = value.to_ints();
      const bool known = out.concrete() && out.shape->size() == to.size();
      if (reshape && data[size_t(n.inputs[0])] && known && !to.empty() && to[0] == batch) {
        for (size_t d = 1; d < to.size(); ++d) to[d] = (*out.shape)[d].value;
        to[0] = -1;
        n.inputs[1] = numbers(g, to, g.value_name(target));
      } else if (expand && to.size() > 1 && to[0] == batch && opset >= 13) {
        if (rows == kNone) {
          auto input = std::find_if(g.inputs.begin(), g.inputs.end(),
                                    [&](ValueId v) { return has_rows(g, v); });
          const ValueId shape = add_node(g, nodes, "Shape", opset, {*input});
          rows = add_node(g, nodes, "Slice", opset,
                          {shape, numbers(g, {0}, "first"), numbers(g, {1}, "second")});
        }
        const ValueId rest = numbers(g, {to.begin() + 1, to.end()}, g.value_name(target));
        n.inputs[1] = add_node(g, nodes, "Concat", opset, {rows, rest});
        nodes.back().attrs["axis"] = int64_t(0);
      }
    }
    nodes.push_back(std::move(n));
  }
  g.nodes = std::move(nodes);
  g.renumber();
}

// What follows from the open inputs is the same with `symbol` in the place of the number.
bool is_open(const TypeInfo& was, const TypeInfo& is, int64_t batch, const std::string& symbol) {
  if (!was.concrete() || !is.is_tensor() || !is.shape || was.shape->size() != is.shape->size())
    return false;
  for (size_t d = 0; d < was.shape->size(); ++d) {
    const bool row = d == 0 && (*was.shape)[d].value == batch;
    if (row ? (*is.shape)[d].symbol != symbol : (*is.shape)[d] != (*was.shape)[d]) return false;
  }
  return true;
}

}  // namespace

bool open_batch(Model& m, const OpTable& ops) {
  const int64_t batch = fixed_batch(m.main);
  const std::string symbol = unused_symbol(m.main);
  if (batch == 0 || symbol.empty()) return false;
  Graph g = m.main.clone();
  auto opset = m.opsets.find("");
  open_targets(g, batch, opset == m.opsets.end() ? 13 : opset->second, ops);
  for (ValueId v : g.inputs)
    if (has_rows(g, v)) (*g.value(v).type.shape)[0] = {-1, symbol};
  for (const Node& n : g.nodes)
    for (ValueId v : n.outputs) {
      if (v == kNone) continue;
      if (!g.value(v).type.is_tensor()) return false;
      g.value(v).type.shape = std::nullopt;
    }
  const std::vector<ValueId> known = settle_types(g, g.nodes.size(), {}, ops);
  for (ValueId v : known) g.value(v).constant = {};
  for (const Node& n : g.nodes)
    for (ValueId v : n.outputs)
      if (v != kNone && !g.value(v).type.shape) return false;  // not for every size
  for (ValueId v : g.outputs)
    if (!is_open(m.main.value(v).type, g.value(v).type, batch, symbol)) return false;
  m.edit_main() = std::move(g);
  return true;
}

}  // namespace onnxtrain
