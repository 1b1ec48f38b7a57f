// The update of one process: its pieces of the units beside what every process does.
#include <algorithm>
#include <map>

#include "distributed/shards.hpp"
#include "graph/reads.hpp"

namespace onnxtrain {

void separate_updates(Graph& g, const OpTable& table) {
  std::vector<Node> nodes;
  for (Node& n : g.nodes) {
    const Op* op = table.find(n);
    const size_t each = op && op->update ? size_t(2 + op->update->states) : 0;
    const size_t scalars = each ? size_t(op->update->scalars) : 0;
    const size_t count = each && n.domain == kTrainingDomain && n.inputs.size() > scalars
                             ? (n.inputs.size() - scalars) / each
                             : 1;
    if (count < 2 || n.inputs.size() != scalars + count * each) {
      nodes.push_back(std::move(n));
      continue;
    }
    for (size_t k = 0; k < count; ++k) {
      Node one = n;
      one.name = g.unique_name(n.name);
      one.inputs.resize(scalars);
      one.outputs.clear();
      for (size_t s = 0; s < each; ++s) one.inputs.push_back(n.inputs[scalars + s * count + k]);
      for (size_t s = 0; s + 1 < each; ++s) {
        const size_t o = s * count + k;
        one.outputs.push_back(o < n.outputs.size() ? n.outputs[o] : kNone);
      }
      nodes.push_back(std::move(one));
    }
  }
  g.nodes = std::move(nodes);
  g.renumber();
}

Tensor elements_of(const Tensor& t, int64_t from, int64_t to) {
  Shape shape(t.shape().size(), 1);
  shape.back() = to - from;
  auto* data = static_cast<char*>(const_cast<void*>(t.data()));
  return Tensor(t.dtype(), std::move(shape), data + size_t(from) * dtype_size(t.dtype()),
                t.owner());
}

namespace {

class Builder {
 public:
  Builder(const Graph& g, const Graph& t, const ShardPlan& plan, const StateVariable& variable)
      : t_(t), plan_(plan), variable_(variable), g_(g.clone()) {}

  void add(const ShardUnit& u, const ShardPiece& piece, SplitStep::Updates& updates) {
    std::map<ValueId, ValueId> here;
    for (NodeId k : u.nodes) {
      Node n = g_.nodes[size_t(k)];
      n.name = g_.unique_name(piece.name(n.name));
      for (ValueId& v : n.inputs)
        if (v != kNone) v = operand(v, piece, here);
      for (ValueId& v : n.outputs) {
        if (v == kNone) continue;
        const ValueId made = g_.add_value(g_.unique_name(piece.name(g_.value_name(v))));
        here[v] = made;
        v = made;
      }
      g_.nodes.push_back(std::move(n));
    }
    for (const auto& v : u.variables) updates.emplace_back(here.at(v.next), piece.name(v.name));
  }

  Graph finish(const SplitStep::Updates& updates) {
    std::vector<ValueId> keep;
    for (const auto& [v, state] : updates) keep.push_back(v);
    g_.sort();
    g_.remove_dead(keep);
    const std::vector<char> used = values_used(g_, keep);
    std::erase_if(g_.inputs, [&](ValueId v) { return !used[size_t(v)]; });
    g_.renumber();
    return std::move(g_);
  }
  Graph& graph() { return g_; }

 private:
  ValueId operand(ValueId v, const ShardPiece& piece, std::map<ValueId, ValueId>& here) {
    if (const auto it = here.find(v); it != here.end()) return it->second;
    const ValueDef d = g_.value(v);
    const TypeInfo& type = t_.value(v).type;
    const bool number = num_elements(type.concrete_shape()) == 1;
    if (number) return v;
    ValueId made = v;
    const bool input = std::find(g_.inputs.begin(), g_.inputs.end(), v) != g_.inputs.end();
    if (plan_.everywhere[size_t(v)] && !input && !d.is_constant()) {
      made = sliced(v, type.concrete_shape().size(), piece);
    } else if (!d.state.empty()) {
      const Tensor part = elements_of(variable_(d.state), piece.from, piece.to);
      made = g_.add_value(g_.unique_name(piece.name(d.name)),
                          TypeInfo::tensor(part.dtype(), part.shape()));
      g_.value(made).constant = part;
      g_.value(made).state = piece.name(d.state);
    } else if (d.is_constant()) {
      made = g_.add_constant(elements_of(d.constant, piece.from, piece.to),
                             g_.unique_name(piece.name(d.name)));
    } else {
      Shape shape(type.concrete_shape().size(), 1);
      shape.back() = piece.to - piece.from;
      made = g_.add_value(piece.name(d.name), TypeInfo::tensor(type.elem, shape));
      g_.inputs.push_back(made);
    }
    here[v] = made;
    return made;
  }

  // Elements of a value that every process computes.
  ValueId sliced(ValueId v, size_t rank, const ShardPiece& piece) {
    const std::string name = piece.name(g_.value_name(v));
    auto call = [&](const char* op, std::vector<ValueId> inputs) {
      Node n;
      n.op = op;
      n.version = 18;
      n.name = g_.unique_name(name);
      n.inputs = std::move(inputs);
      return g_.add_node(std::move(n), 1, name)[0];
    };
    auto numbers = [&](const std::vector<int64_t>& n) {
      return g_.add_constant(Tensor::vector(n), g_.unique_name(name));
    };
    std::vector<int64_t> shape(rank, 1);
    shape.back() = piece.to - piece.from;
    const ValueId flat = call("Reshape", {v, numbers({-1})});
    const ValueId part = call("Slice", {flat, numbers({piece.from}), numbers({piece.to})});
    return call("Reshape", {part, numbers(shape)});
  }

  const Graph& t_;
  const ShardPlan& plan_;
  const StateVariable& variable_;
  Graph g_;
};

}  // namespace

Graph shard_graph(const Graph& g, const Graph& t, SplitStep::Updates& updates,
                  const ShardPlan& plan, const std::vector<ShardPiece>& pieces,
                  const StateVariable& variable) {
  std::set<std::string> shared;
  for (const ShardUnit& u : plan.units)
    for (const auto& v : u.variables) shared.insert(v.name);
  std::erase_if(updates, [&](const auto& u) { return shared.count(u.second) != 0; });
  Builder b(g, t, plan, variable);
  for (const ShardPiece& p : pieces) {
    const ShardUnit& u = plan.units[p.unit];
    if (p.to >= 0)
      b.add(u, p, updates);
    else
      for (const auto& v : u.variables) updates.emplace_back(v.next, v.name);
  }
  return b.finish(updates);
}

}  // namespace onnxtrain
