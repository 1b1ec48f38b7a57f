// What is known of types when some sizes of the inputs are open. The graph's shapes are computed
// twice with different numbers for the open sizes: what is the same both times does not depend on
// them; what is the number of an open size is that size. Small numbers, rising and falling, have a
// veto where the model takes them: the larger of a size and 6, or the first 50 of an axis, are the
// same for all large sizes, but not for small ones.
#include <algorithm>
#include <cstring>
#include <map>

#include "convert/lower.hpp"
#include "op/fold.hpp"
#include "op/model_refusal.hpp"

namespace onnxtrain {

namespace {

constexpr int kProbes = 4;
constexpr int64_t kProbe[kProbes][8] = {{101, 103, 107, 109, 113, 127, 131, 137},
                                        {211, 223, 227, 229, 233, 239, 241, 251},
                                        {2, 3, 5, 7, 11, 13, 17, 19},
                                        {19, 17, 13, 11, 7, 5, 3, 2}};
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
  // What sizes are that were found with each set of numbers; -1: not found, for small numbers.
  Dim merged(const int64_t (&found)[kProbes]) const {
    auto agree = [&](auto wanted) {
      for (int p = 0; p < kProbes; ++p)
        if (found[p] != wanted(p) && (p < 2 || found[p] >= 0)) return false;
      return true;
    };
    if (agree([&](int) { return found[0]; })) return {found[0], {}};
    for (size_t k = 0; k < names_.size(); ++k)
      if (agree([&](int p) { return kProbe[p][k]; })) return {-1, names_[k]};
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

void settle_node(Graph& g, const Node& n, const OpTable& ops);

// What a body makes of inputs of these types.
std::vector<TypeInfo> settle_body(const Graph& outer, const GraphPtr& graph,
                                  const std::vector<TypeInfo>& inputs, const OpTable& ops) {
  std::vector<TypeInfo> out;
  if (!graph || graph->inputs.size() != inputs.size()) return out;
  Graph b = graph->clone();
  for (size_t k = 0; k < inputs.size(); ++k) b.value(b.inputs[k]).type = inputs[k];
  for (const auto& c : b.captures) {
    b.value(c.inner).type = outer.value(c.outer).type;
    b.value(c.inner).constant = outer.value(c.outer).constant;
  }
  for (size_t k = 0; k < b.nodes.size(); ++k) settle_node(b, Node(b.nodes[k]), ops);
  for (ValueId v : b.outputs) out.push_back(b.value(v).type);
  return out;
}

bool same(const TypeInfo& a, const TypeInfo& b) {
  return a.concrete() && b.concrete() && a.elem == b.elem &&
         a.concrete_shape() == b.concrete_shape();
}

TypeInfo stacked(const TypeInfo& item, int64_t times) {
  TypeInfo t = item;
  t.shape->insert(t.shape->begin(), Dim{times, {}});
  return t;
}

// How often a Loop runs, when that is known; otherwise -1.
int64_t trips(const Graph& g, const Node& n, const Graph& body) {
  auto is_true = [](const ValueDef& d) {
    return d.constant.defined() && d.constant.dtype() == DType::kBool && *d.constant.as<bool>();
  };
  const ValueId count = !n.inputs.empty() ? n.inputs[0] : kNone;
  const ValueId go = n.inputs.size() > 1 ? n.inputs[1] : kNone;
  if (count == kNone || !g.value(count).constant.defined()) return -1;
  if (go != kNone && !is_true(g.value(go))) return -1;
  ValueId v = body.outputs[0];
  while (body.value(v).producer >= 0 && body.nodes[size_t(body.value(v).producer)].is("Identity"))
    v = body.nodes[size_t(body.value(v).producer)].inputs[0];
  if (v != body.inputs[1] && !is_true(body.value(v))) return -1;
  return std::max<int64_t>(0, g.value(count).constant.to_ints()[0]);
}

bool no_axes(const Node& n) {
  for (const char* name : {"scan_input_axes", "scan_output_axes"})
    for (int64_t a : n.ints(name))
      if (a != 0) return false;
  return true;
}

// Branches that agree; loops whose state keeps its shape. Nothing is learned about others.
void settle_control(Graph& g, const Node& n, const OpTable& ops) {
  std::vector<TypeInfo> made;
  size_t states = 0;
  int64_t times = -1;
  if (n.is("If")) {
    made = settle_body(g, n.graph("then_branch"), {}, ops);
    states = made.size();
    const std::vector<TypeInfo> other = settle_body(g, n.graph("else_branch"), {}, ops);
    if (!std::equal(made.begin(), made.end(), other.begin(), other.end(), same)) return;
  } else {
    std::vector<TypeInfo> in;
    size_t first = n.is("Loop") ? 2 : 0;
    size_t scanned = n.is("Scan") ? size_t(n.i("num_scan_inputs", 0)) : 0;
    if (n.inputs.size() < first + scanned || !no_axes(n)) return;
    if (first > 0) in = {TypeInfo::tensor(DType::kInt64, {}), TypeInfo::tensor(DType::kBool, {})};
    states = n.inputs.size() - first - scanned;
    for (size_t k = first; k < n.inputs.size(); ++k) {
      if (n.inputs[k] == kNone || !g.value(n.inputs[k]).type.concrete()) return;
      in.push_back(g.value(n.inputs[k]).type);
      if (k < first + states) continue;
      if (in.back().shape->empty()) return;
      times = in.back().shape->front().value;
      in.back().shape->erase(in.back().shape->begin());
    }
    const GraphPtr body = n.graph("body");
    made = settle_body(g, body, in, ops);
    if (made.size() < states + (first > 0)) return;
    if (first > 0) {
      times = trips(g, n, *body);
      made.erase(made.begin());
    }
    for (size_t k = 0; k < states; ++k)
      if (!same(made[k], in[first + k])) return;
  }
  for (size_t k = 0; k < made.size() && k < n.outputs.size(); ++k) {
    if (n.outputs[k] == kNone || !made[k].concrete() || (k >= states && times < 0)) continue;
    g.value(n.outputs[k]).type = k < states ? made[k] : stacked(made[k], times);
  }
}

void settle_node(Graph& g, const Node& n, const OpTable& ops) {
  if (n.is("If") || n.is("Loop") || (n.is("Scan") && n.version >= 9))
    return settle_control(g, n, ops);
  const Op* op = ops.find(n);
  if (!op || !op->shape || n.is("Gradient", kTrainingDomain)) return;
  // where these numbers do not fit the model, nothing is learned about this node
  model_refusal([&] {
    for (ValueId v : n.outputs)
      if (v != kNone && g.value(v).type.is_tensor()) g.value(v).type.shape = std::nullopt;
    infer_node(g, n, ops);
    bool numbers = true;
    for (ValueId v : n.outputs) numbers &= v != kNone && is_number(g.value(v));
    if (numbers) fold_node(g, n, ops);
  });
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
  std::vector<Graph> probes;
  for (int p = 0; p < kProbes; ++p) probes.push_back(probe(g, main_nodes, data, sizes, p, ops));
  std::vector<ValueId> known;
  for (const Node& n : g.nodes)
    for (ValueId v : n.outputs) {
      if (v == kNone) continue;
      const ValueDef &x = probes[0].value(v), &y = probes[1].value(v);
      ValueDef& d = g.value(v);
      bool both = x.type.concrete() && y.type.concrete() &&
                  x.type.shape->size() == y.type.shape->size() && x.type.elem == y.type.elem;
      if (!both) continue;
      TypeInfo t = TypeInfo::tensor(x.type.elem);
      t.shape.emplace();
      for (size_t k = 0; k < x.type.shape->size(); ++k) {
        int64_t found[kProbes];
        for (int p = 0; p < kProbes; ++p) {
          const TypeInfo& type = probes[size_t(p)].value(v).type;
          const bool same_rank = type.concrete() && type.shape->size() == x.type.shape->size();
          found[p] = same_rank ? (*type.shape)[k].value : -1;
        }
        t.shape->push_back(sizes.merged(found));
      }
      d.type = t;
      bool agreed = !d.constant.defined() && same_bits(x.constant, y.constant);
      for (size_t p = 2; p < probes.size(); ++p) {
        const Tensor& other = probes[p].value(v).constant;
        agreed = agreed && (!other.defined() || same_bits(x.constant, other));
      }
      if (!agreed) continue;
      d.constant = x.constant;
      known.push_back(v);
    }
  return known;
}

}  // namespace onnxtrain
