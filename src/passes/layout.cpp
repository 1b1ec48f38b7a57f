// Brings convolutions and what stands between them into channels-last order: [N,D...,C] in place of
// [N,C,D...]. A turned tensor is an ordinary tensor of the permuted shape, so memory, views,
// element-wise kernels and fusion need to know nothing. What an operator can do stands in its
// record (op/channels_last.hpp); this file only chooses nodes and puts Transpose nodes where the
// two orders meet.
#include <algorithm>

#include "op/channels_last.hpp"
#include "passes/passes.hpp"

namespace onnxtrain {

namespace {

class Turner {
 public:
  Turner(Graph& g, const PassContext& c) : g_(g), c_(c), readers_(g.consumers()) {
    g.renumber();
    fixed_.assign(g.values.size(), 0);
    for (ValueId v : g.outputs) fixed_[size_t(v)] = 1;
    for (ValueId v : c.keep) fixed_[size_t(v)] = 1;
    find_dynamic();
    able_.resize(g.nodes.size());
    for (size_t k = 0; k < g.nodes.size(); ++k) able_[k] = able(g.nodes[k]);
  }

  // True when something changed.
  bool run() {
    turned_.assign(g_.nodes.size(), 0);
    for (size_t k = 0; k < g_.nodes.size(); ++k) {
      rules_.push_back(able_[k] ? &channels_last_rule(c_.table.get(g_.nodes[k])) : &none_);
      ins_.push_back(find_inputs(k));
      outs_.push_back(find_outputs(k));
    }
    bool any = false;
    for (size_t k = 0; k < g_.nodes.size(); ++k) any |= turned_[k] = able_[k] && rule(k).gains;
    if (!any) return false;
    follow_producers();
    // then what is cheaper the other way, seen from both sides
    for (int round = 0; round < 4; ++round) {
      bool changed = false;
      for (size_t k = g_.nodes.size(); k-- > 0;) changed |= reconsider(k);
      for (size_t k = 0; k < g_.nodes.size(); ++k) changed |= reconsider(k);
      if (!changed) break;
    }
    rewrite();
    return true;
  }

 private:
  const ChannelsLast& rule(size_t node) const { return *rules_[node]; }
  const TypeInfo& type(ValueId v) const { return g_.value(v).type; }
  Shape shape(ValueId v) const { return type(v).concrete_shape(); }
  int64_t bytes(ValueId v) const {
    return num_elements(shape(v)) * int64_t(dtype_size(type(v).elem));
  }

  // Values whose shape the planner will only know at run time.
  void find_dynamic() {
    dynamic_.assign(g_.values.size(), 0);
    for (size_t v = 0; v < g_.values.size(); ++v)
      dynamic_[v] = !g_.values[v].type.concrete() || g_.values[v].type.elem == DType::kString;
    for (const Node& n : g_.nodes) {
      const Op* o = c_.table.find(n);
      bool on_values = !o || (o->run_values && !o->shape), any = false;
      for (ValueId v : g_.reads(n)) any |= dynamic_[size_t(v)];
      for (ValueId v : n.outputs) any |= v != kNone && dynamic_[size_t(v)];
      for (ValueId v : n.outputs)
        if (v != kNone && any && !on_values) dynamic_[size_t(v)] = 1;
    }
  }

  bool is_static(const Node& n) const {
    for (ValueId v : g_.reads(n))
      if (dynamic_[size_t(v)]) return false;
    for (ValueId v : n.outputs)
      if (v != kNone && (dynamic_[size_t(v)] || num_elements(shape(v)) == 0)) return false;
    return true;
  }
  static bool turnable(const Shape& s) { return s.size() >= 3 && num_elements(s) > 0; }

  bool able(const Node& n) const {
    const Op* o = c_.table.find(n);
    if (!o || o->random || !is_static(n)) return false;
    const ChannelsLast& cl = channels_last_rule(*o);
    if (cl.elementwise) return able_elementwise(n);
    if (cl.in.empty() && cl.out.empty()) return false;
    for (int i : cl.in)
      if (operand(n.inputs, i) != kNone && !turnable(shape(operand(n.inputs, i)))) return false;
    for (int i : cl.out)
      if (operand(n.outputs, i) != kNone && !turnable(shape(operand(n.outputs, i)))) return false;
    return !cl.applies || cl.applies(g_, n);
  }

  // One result, at least one operand of its shape, the others broadcast from the right.
  bool able_elementwise(const Node& n) const {
    if (n.outputs.size() != 1 || n.outputs[0] == kNone) return false;
    if (n.domain.empty() && n.version < 7 && n.has("axis")) return false;  // old broadcasting
    Shape out = shape(n.outputs[0]);
    if (!turnable(out)) return false;
    bool whole = false;
    for (ValueId v : n.inputs) {
      if (v == kNone) continue;
      Shape s = shape(v);
      if (s.size() > out.size()) return false;
      for (size_t d = 0; d < s.size(); ++d) {
        int64_t o = out[out.size() - s.size() + d];
        if (s[d] != 1 && s[d] != o) return false;
      }
      whole |= s == out;
    }
    return whole;
  }

  static ValueId operand(const std::vector<ValueId>& list, int i) {
    return size_t(i) < list.size() ? list[size_t(i)] : kNone;
  }

  // Operands that come and go in the other order when node k is turned; those that broadcast are
  // small and do not count here.
  const std::vector<ValueId>& turned_inputs(size_t k) const { return ins_[k]; }
  const std::vector<ValueId>& turned_outputs(size_t k) const { return outs_[k]; }
  std::vector<ValueId> find_inputs(size_t k) const {
    const Node& n = g_.nodes[k];
    std::vector<ValueId> r;
    if (rule(k).elementwise) {
      for (ValueId v : n.inputs)
        if (v != kNone && shape(v) == shape(n.outputs[0])) r.push_back(v);
    } else {
      for (int i : rule(k).in)
        if (ValueId v = operand(n.inputs, i); v != kNone) r.push_back(v);
    }
    return r;
  }
  std::vector<ValueId> find_outputs(size_t k) const {
    const Node& n = g_.nodes[k];
    if (rule(k).elementwise) return {n.outputs[0]};
    std::vector<ValueId> r;
    for (int i : rule(k).out)
      if (ValueId v = operand(n.outputs, i); v != kNone) r.push_back(v);
    return r;
  }
  static bool contains(const std::vector<ValueId>& list, ValueId v) {
    return std::find(list.begin(), list.end(), v) != list.end();
  }

  bool made_last(ValueId v) const {
    NodeId p = g_.value(v).producer;
    return p >= 0 && turned_[size_t(p)] && contains(turned_outputs(size_t(p)), v);
  }
  bool read_last(NodeId k, ValueId v) const {
    return turned_[size_t(k)] && contains(turned_inputs(size_t(k)), v);
  }

  // First guess: a node does as most of what it reads.
  void follow_producers() {
    for (size_t k = 0; k < g_.nodes.size(); ++k) {
      if (!able_[k] || turned_[k]) continue;
      int64_t all = 0, last = 0;
      for (ValueId v : turned_inputs(k)) {
        all += bytes(v);
        last += made_last(v) ? bytes(v) : 0;
      }
      turned_[k] = last > 0 && 2 * last >= all;
    }
  }

  // Bytes that have to be transposed next to node k as things stand.
  int64_t transposed_bytes(size_t k) const {
    int64_t sum = 0;
    for (ValueId v : turned_inputs(k)) {
      bool made = made_last(v), other = fixed_[size_t(v)] && made;
      for (NodeId r : readers_[size_t(v)])
        if (size_t(r) != k) other |= read_last(r, v) != made;
      if (made != bool(turned_[k]) && !other) sum += bytes(v);
    }
    for (ValueId v : turned_outputs(k)) {
      bool needed = fixed_[size_t(v)] && turned_[k];
      for (NodeId r : readers_[size_t(v)]) needed |= read_last(r, v) != bool(turned_[k]);
      if (needed) sum += bytes(v);
    }
    return sum;
  }

  bool reconsider(size_t k) {
    if (!able_[k] || rule(k).gains) return false;
    int64_t now = transposed_bytes(k);
    turned_[k] ^= 1;
    if (transposed_bytes(k) < now) return true;
    turned_[k] ^= 1;
    return false;
  }

  // ---------------------------------------------------------------- rewriting
  void rewrite() {
    size_t values = g_.values.size();
    std::vector<char> plain_wanted(values, 0);
    for (size_t v = 0; v < values; ++v) {
      plain_wanted[v] = fixed_[v];
      for (NodeId r : readers_[v]) plain_wanted[v] |= !read_last(r, ValueId(v));
    }
    std::vector<std::vector<ValueId>> ins(g_.nodes.size()), outs(g_.nodes.size());
    for (size_t k = 0; k < g_.nodes.size(); ++k)
      if (turned_[k]) ins[k] = turned_inputs(k), outs[k] = turned_outputs(k);
    last_.assign(values, kNone);
    std::vector<Node> before = std::move(g_.nodes);
    g_.nodes.clear();
    for (size_t k = 0; k < before.size(); ++k) {
      Node n = std::move(before[k]);
      if (!turned_[k]) {
        g_.nodes.push_back(std::move(n));
        continue;
      }
      bool elementwise = channels_last_rule(c_.table.get(n)).elementwise;
      for (ValueId& v : n.inputs) {
        if (v == kNone) continue;
        if (contains(ins[k], v))
          v = last_of(v);
        else if (elementwise && num_elements(shape(v)) > 1)
          v = last_of(lifted(v, shape(n.outputs[0]).size()));
      }
      if (!elementwise) n.attrs[kChannelsLast] = int64_t(1);
      for (ValueId& v : n.outputs)
        if (v != kNone && contains(outs[k], v)) {
          last_[size_t(v)] = new_value(v, to_channels_last(shape(v)), "_last");
          v = last_[size_t(v)];
        }
      g_.nodes.push_back(std::move(n));
      for (ValueId v : outs[k])
        if (plain_wanted[size_t(v)]) move(last_[size_t(v)], v, false);
    }
  }

  ValueId new_value(ValueId like, const Shape& s, const char* suffix) {
    std::string name = g_.unique_name(g_.value_name(like) + suffix);
    ValueId v = g_.add_value(std::move(name), TypeInfo::tensor(type(like).elem, s));
    last_.resize(g_.values.size(), kNone);
    return v;
  }

  // The channels-last form of a value, made at its first use.
  ValueId last_of(ValueId v) {
    if (last_[size_t(v)] == kNone) {
      ValueId to = new_value(v, to_channels_last(shape(v)), "_last");
      move(v, to, true);
      last_[size_t(v)] = to;
    }
    return last_[size_t(v)];
  }

  // An operand that broadcasts, with all dimensions of the result.
  ValueId lifted(ValueId v, size_t rank) {
    Shape s = shape(v);
    if (s.size() == rank) return v;
    s.insert(s.begin(), rank - s.size(), 1);
    ValueId to = new_value(v, s, "_lifted");
    reshape(v, to);
    return to;
  }

  void reshape(ValueId from, ValueId to) {
    ValueId dims = g_.add_constant(Tensor::vector<int64_t>(shape(to)));
    last_.resize(g_.values.size(), kNone);
    add("Reshape", {from, dims}, to, {});
  }

  // Puts `to` = `from` in the other order; where no two elements change places it is only a view.
  void move(ValueId from, ValueId to, bool to_last) {
    Shape first = shape(to_last ? from : to);
    int64_t rest = num_elements(Shape(first.begin() + 2, first.end()));
    if (first[1] == 1 || rest == 1) return reshape(from, to);
    std::vector<int64_t> perm(first.size());
    for (size_t d = 0; d < perm.size(); ++d) perm[d] = int64_t(d);
    if (to_last)
      std::rotate(perm.begin() + 1, perm.begin() + 2, perm.end());
    else
      std::rotate(perm.begin() + 1, perm.end() - 1, perm.end());
    add("Transpose", {from}, to, std::move(perm));
  }

  void add(const char* name, std::vector<ValueId> in, ValueId out, std::vector<int64_t> perm) {
    Node n;
    n.op = name;
    n.version = 13;
    n.name = g_.value_name(out);
    n.inputs = std::move(in);
    n.outputs = {out};
    if (!perm.empty()) n.attrs["perm"] = std::move(perm);
    g_.nodes.push_back(std::move(n));
  }

  Graph& g_;
  const PassContext& c_;
  std::vector<std::vector<NodeId>> readers_;
  std::vector<char> fixed_, dynamic_, able_, turned_;
  static inline const ChannelsLast none_{};
  std::vector<const ChannelsLast*> rules_;        // by node; of those that are able
  std::vector<std::vector<ValueId>> ins_, outs_;  // by node: what is turned with it
  std::vector<ValueId> last_;
};

}  // namespace

void pass_layout(Graph& g, const PassContext& c) {
  if (Turner(g, c).run()) pass_dead(g, c);
}

}  // namespace onnxtrain
