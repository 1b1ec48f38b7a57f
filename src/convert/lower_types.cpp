// What is known of types when some sizes of the inputs are open. The graph's shapes are computed
// twice with different numbers for the open sizes: what is the same both times does not depend on
// them; what is the number of an open size is that size.
#include <algorithm>
#include <cstring>
#include <map>

#include "convert/lower.hpp"
#include "op/fold.hpp"

namespace onnxtrain {

namespace {

constexpr int64_t kProbe[2][8] = {{101, 103, 107, 109, 113, 127, 131, 137},
                                  {211, 223, 227, 229, 233, 239, 241, 251}};
constexpr int64_t kNumbers = 64;  // floating-point constants up to this size are settings

// The open sizes, by name; nameless ones are all different.
class OpenSizes {
 public:
  void add(const TypeInfo& t) {
    if (!t.is_tensor() || !t.shape) return;
    for (const Dim& d : *t.shape)
      if (!d.known() && !d.symbol.empty() && names_.size() < 8 && !index_.count(d.symbol)) {
        index_[d.symbol] = names_.size();
        names_.push_back(d.symbol);
      }
  }
  // False when a size has no name.
  bool concrete(TypeInfo& t, int probe, const std::map<std::string, int64_t>& more) const {
    if (!t.is_tensor() || !t.shape) return false;
    for (Dim& d : *t.shape) {
      if (d.known()) continue;
      auto it = index_.find(d.symbol);
      auto known = more.find(d.symbol);
      if (it != index_.end())
        d = {kProbe[probe][it->second], {}};
      else if (known != more.end())
        d = {known->second, {}};
      else
        return false;
    }
    return true;
  }
  Dim merged(int64_t a, int64_t b) const {
    if (a == b) return {a, {}};
    for (size_t k = 0; k < names_.size(); ++k)
      if (kProbe[0][k] == a && kProbe[1][k] == b) return {-1, names_[k]};
    return {};
  }

 private:
  std::vector<std::string> names_;
  std::map<std::string, size_t> index_;
};

bool is_number(const ValueDef& d) {
  if (!d.type.is_tensor() || !dtype_is_differentiable(d.type.elem)) return true;
  return d.type.concrete() && num_elements(d.type.concrete_shape()) <= kNumbers;
}

void settle_node(Graph& g, const Node& n, const OpTable& ops) {
  const Op* op = ops.find(n);
  if (!op || !op->shape || n.is("Gradient", kTrainingDomain)) return;
  try {
    for (ValueId v : n.outputs)
      if (v != kNone && g.value(v).type.is_tensor()) g.value(v).type.shape = std::nullopt;
    infer_node(g, n, ops);
    bool numbers = true;
    for (ValueId v : n.outputs) numbers &= v != kNone && is_number(g.value(v));
    if (numbers) fold_node(g, n, ops);
  } catch (const Error&) {
    // these numbers do not fit the model: nothing is learned about this node
  }
}

Graph probe(const Graph& original, size_t main_nodes, const std::vector<ValueId>& data,
            const OpenSizes& sizes, int which, const OpTable& ops) {
  Graph g = original.clone();
  std::map<std::string, int64_t> more;  // names that exporters give to sizes of outputs
  for (ValueId v : g.inputs) sizes.concrete(g.value(v).type, which, more);
  auto take_data = [&] {
    for (ValueId v : g.outputs) {
      const TypeInfo &said = original.value(v).type, &got = g.value(v).type;
      if (!said.is_tensor() || !said.shape || !got.concrete()) continue;
      for (size_t d = 0; d < said.shape->size() && d < got.shape->size(); ++d)
        if (!(*said.shape)[d].known()) more[(*said.shape)[d].symbol] = (*got.shape)[d].value;
    }
    for (ValueId v : data) sizes.concrete(g.value(v).type, which, more);
  };
  for (size_t k = 0; k < g.nodes.size(); ++k) {
    if (k == main_nodes) take_data();
    settle_node(g, Node(g.nodes[k]), ops);
  }
  return g;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined() || a.dtype() != b.dtype() || a.shape() != b.shape())
    return false;
  return dtype_size(a.dtype()) > 0 &&
         std::memcmp(a.data(), b.data(), size_t(a.size()) * dtype_size(a.dtype())) == 0;
}

}  // namespace

std::vector<ValueId> settle_types(Graph& g, size_t main_nodes, const std::vector<ValueId>& data,
                                  const OpTable& ops) {
  OpenSizes sizes;
  for (ValueId v : g.inputs)
    if (!g.value(v).constant.defined()) sizes.add(g.value(v).type);
  for (ValueId v : main_nodes == 0 ? data : std::vector<ValueId>{}) sizes.add(g.value(v).type);
  const Graph a = probe(g, main_nodes, data, sizes, 0, ops),
              b = probe(g, main_nodes, data, sizes, 1, ops);
  std::vector<ValueId> known;
  for (const Node& n : g.nodes)
    for (ValueId v : n.outputs) {
      if (v == kNone) continue;
      const ValueDef &x = a.value(v), &y = b.value(v);
      ValueDef& d = g.value(v);
      bool both = x.type.concrete() && y.type.concrete() &&
                  x.type.shape->size() == y.type.shape->size() && x.type.elem == y.type.elem;
      if (!both) continue;
      TypeInfo t = TypeInfo::tensor(x.type.elem);
      t.shape.emplace();
      for (size_t k = 0; k < x.type.shape->size(); ++k)
        t.shape->push_back(sizes.merged((*x.type.shape)[k].value, (*y.type.shape)[k].value));
      d.type = t;
      if (d.constant.defined() || !same_bits(x.constant, y.constant)) continue;
      d.constant = x.constant;
      known.push_back(v);
    }
  return known;
}

}  // namespace onnxtrain
