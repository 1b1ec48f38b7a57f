// The runner of the rules, and what they are written with.
#include "convert/portable/rewrite.hpp"

#include <algorithm>
#include <map>

#include "convert/lower.hpp"
#include "convert/portable/rules.hpp"
#include "op/identity_node.hpp"
#include "passes/passes.hpp"

namespace onnxtrain::portable {

const Node* Site::producer(ValueId v) {
  if (v == kNone) return nullptr;
  const NodeId k = graph().value(v).producer;
  return k < 0 ? nullptr : &graph().nodes[size_t(k)];
}

const Node* Site::maker(ValueId v, std::string_view op) {
  const Node* n = producer(v);
  while (n && (n->is("Identity") || (n->is("Cast") && dtype(n->inputs[0]) == dtype(n->outputs[0]))))
    n = producer(n->inputs[0]);
  return n && n->is(op) ? n : nullptr;
}

ValueId Site::cast(ValueId v, DType to) {
  return dtype(v) == to ? v : call("Cast", {v}, {{"to", int64_t(to)}});
}

ValueId Site::reshape(ValueId v, const std::vector<int64_t>& to) {
  if (shape_known(v) && shape(v) == to) return v;
  return call("Reshape", {v, ints(to)});
}

ValueId Site::slice(ValueId v, int64_t axis, int64_t from, int64_t to, int64_t step) {
  return call("Slice", {v, ints({from}), ints({to}), ints({axis}), ints({step})});
}

ValueId Site::pad(ValueId v, const std::vector<int64_t>& before, const std::vector<int64_t>& after,
                  double value) {
  auto zero = [](int64_t n) { return n == 0; };
  if (std::all_of(before.begin(), before.end(), zero) &&
      std::all_of(after.begin(), after.end(), zero))
    return v;
  std::vector<int64_t> pads = before;
  pads.insert(pads.end(), after.begin(), after.end());
  return call("Pad", {v, ints(pads), scalar(value, v)});
}

std::vector<int64_t> Site::sizes(ValueId v) const {
  std::vector<int64_t> s;
  const TypeInfo& t = type(v);
  if (t.is_tensor() && t.shape)
    for (const Dim& d : *t.shape) s.push_back(d.known() ? d.value : -1);
  return s;
}

bool Site::numbers(ValueId v, std::vector<int64_t>& out) const {
  const Tensor* t = constant(v);
  if (!t || !dtype_is_integer(t->dtype())) return false;
  out = t->to_ints();
  return true;
}

bool Site::is_all(ValueId v, double number) {
  for (int depth = 0; v != kNone && depth < 16; ++depth) {
    if (const Tensor* t = constant(v)) {
      if (t->size() > 4096 || t->dtype() == DType::kString) return false;
      const std::vector<double> all = t->to_doubles();
      return std::all_of(all.begin(), all.end(), [&](double d) { return d == number; });
    }
    const Node* n = producer(v);
    if (!n) return false;
    if (n->is("ConstantOfShape")) {
      const Tensor* t = n->tensor("value");
      return t ? t->to_doubles()[0] == number : number == 0;
    }
    if (!n->is("Expand") && !n->is("Reshape") && !n->is("Identity")) return false;
    v = n->inputs[0];
  }
  return false;
}

bool Site::depends_on_data(ValueId v) {
  std::vector<ValueId> todo{v};
  std::vector<char> seen(graph().values.size(), 0);
  while (!todo.empty()) {
    const ValueId at = todo.back();
    todo.pop_back();
    if (at == kNone || seen[size_t(at)]) continue;
    seen[size_t(at)] = 1;
    if (const Node* n = producer(at)) {
      const std::vector<ValueId> reads = graph().reads(*n);
      todo.insert(todo.end(), reads.begin(), reads.end());
    } else if (std::find(c_.data.begin(), c_.data.end(), graph().value_name(at)) != c_.data.end()) {
      return true;
    }
  }
  return false;
}

namespace {

// A type that is said better by the value that is replaced.
void keep_type(Graph& g, ValueId from, ValueId to) {
  const TypeInfo old = g.value(from).type;
  TypeInfo& t = g.value(to).type;
  if (!old.is_tensor() || (t.is_tensor() && t.elem != old.elem)) return;
  if (!t.is_tensor() || !t.shape)
    t = old;
  else if (old.shape && old.shape->size() == t.shape->size())
    for (size_t d = 0; d < t.shape->size(); ++d)
      if (!(*t.shape)[d].known() && ((*old.shape)[d].known() || (*t.shape)[d].symbol.empty()))
        (*t.shape)[d] = (*old.shape)[d];
}

void push(Graph& g, Node n) {
  for (ValueId v : n.outputs)
    if (v != kNone) g.value(v).producer = NodeId(g.nodes.size());
  g.nodes.push_back(std::move(n));
}

class Walk {
 public:
  Walk(Graph& g, const Rules& rules, const Context& c) : g_(g), rules_(rules), c_(c) {
    to_.resize(g.values.size());
    for (size_t k = 0; k < to_.size(); ++k) to_[k] = ValueId(k);
  }
  int run() {
    std::vector<Node> old = std::move(g_.nodes);
    g_.nodes.clear();
    for (Node& n : old) {
      for (ValueId& v : n.inputs)
        if (v != kNone) v = to_[size_t(v)];
      for (auto& [key, a] : n.attrs)
        if (GraphPtr* sub = std::get_if<GraphPtr>(&a)) {
          auto copy = std::make_shared<Graph>((*sub)->clone());
          for (auto& cap : copy->captures) cap.outer = to_[size_t(cap.outer)];
          *sub = copy;
        }
      const NamedRule* r = n.domain.empty() ? find(n.op) : nullptr;
      if (!r || !replace(n, *r)) push(g_, std::move(n));
    }
    g_.renumber();
    return replaced_;
  }

 private:
  const NamedRule* find(const std::string& op) const {
    for (const NamedRule& r : rules_)
      if (op == r.op) return &r;
    return nullptr;
  }
  bool replace(const Node& n, const NamedRule& r) {
    const size_t before = g_.nodes.size();
    Site s(g_, c_, n);
    std::vector<ValueId> made;
    try {
      made = r.rule(s);
    } catch (Error& e) {
      e.add_place(cat("while writing ", n.label(), " in plain operators (", r.name, ")"));
      throw;
    }
    if (made.empty()) {
      OT_ASSERT(g_.nodes.size() >= before);
      return false;
    }
    ++replaced_;
    for (size_t k = 0; k < n.outputs.size(); ++k) {
      const ValueId v = n.outputs[k];
      if (v == kNone || k >= made.size() || made[k] == kNone) continue;
      keep_type(g_, v, made[k]);
      to_[size_t(v)] = made[k];
      // for outputs of the graph; otherwise nobody reads it
      push(g_, identity_node(g_, made[k], v, c_.opset));
    }
    return true;
  }

  Graph& g_;
  const Rules& rules_;
  const Context& c_;
  std::vector<ValueId> to_;
  int replaced_ = 0;
};

// Nodes whose results are known are not needed.
void drop_known(Graph& g) {
  std::vector<char> output(g.values.size(), 0);
  for (ValueId v : g.outputs) output[size_t(v)] = 1;
  std::vector<Node> kept;
  for (Node& n : g.nodes) {
    bool known = !n.outputs.empty();
    for (ValueId v : n.outputs)
      known &= v == kNone || (g.value(v).constant.defined() && !output[size_t(v)]);
    if (!known) {
      for (ValueId v : n.outputs)
        if (v != kNone && (output[size_t(v)] || n.outputs.size() > 1)) g.value(v).constant = {};
      kept.push_back(std::move(n));
    }
  }
  g.nodes = std::move(kept);
  g.renumber();
}

}  // namespace

int apply(Graph& g, const Rules& rules, const Context& c) {
  g.renumber();
  const int n = Walk(g, rules, c).run();
  if (n > 0) {
    g.remove_dead();
    g.renumber();
  }
  return n;
}

void tidy_names(Graph& g) {
  g.renumber();
  std::vector<char> fixed(g.values.size(), 0);
  for (ValueId v : g.inputs) fixed[size_t(v)] = 1;
  for (ValueId v : g.outputs) fixed[size_t(v)] = 1;
  for (Node& n : g.nodes) {
    if (!n.is("Identity")) continue;
    const ValueId from = n.inputs[0], to = n.outputs[0];
    const NodeId made = g.value(from).producer;
    const bool output = std::find(g.outputs.begin(), g.outputs.end(), to) != g.outputs.end();
    if (!output || made < 0 || fixed[size_t(from)]) continue;
    // the two values change places; the Identity is then read by nobody
    std::swap(g.value(from).name, g.value(to).name);
    for (ValueId& v : g.outputs)
      if (v == to) v = from;
    fixed[size_t(from)] = 1;
  }
  g.remove_dead();
  std::map<std::string, int> seen;
  for (Node& n : g.nodes) {
    if (n.name.empty()) n.name = n.op;
    const std::string base = n.name;
    while (seen[n.name]++ > 0) n.name = cat(base, "_", seen[base]);
  }
  g.renumber();
}

void settle(Graph& g, const Context& c) {
  g.renumber();
  settle_types(g, 0, {}, c.ops);
}

void simplify(Graph& g, const Context& c) {
  for (size_t before = g.nodes.size() + 1; before != g.nodes.size();) {
    before = g.nodes.size();
    settle(g, c);
    drop_known(g);
    const std::vector<ValueId> keep;
    const PassContext p{keep, c.ops};
    pass_identity(g, p);
    pass_cse(g, p);
    g.remove_dead();
    g.renumber();
  }
  g.verify("simplify");
}

namespace {
void add(Rules& all, Rules more) { all.insert(all.end(), more.begin(), more.end()); }
}  // namespace

void run_rules(Graph& g, const Context& c) {
  // these look at how gradients are written, so nothing may be folded before
  settle(g, c);
  Rules shapes_of_gradients = movement_rules();
  add(shapes_of_gradients, conv_rules());
  add(shapes_of_gradients, index_rules());
  apply(g, shapes_of_gradients, c);
  simplify(g, c);
  Rules all = loss_rules();
  add(all, recurrent_rules());
  add(all, scan_rules());
  add(all, math_rules());
  add(all, reduce_rules());
  add(all, shape_rules());
  add(all, movement_rules());
  add(all, index_rules());
  add(all, linear_rules());
  add(all, resize_rules());
  add(all, pool_rules());
  add(all, quantize_rules());
  for (int round = 0; round < 8; ++round) {
    const int changed = apply(g, all, c);
    simplify(g, c);
    if (changed == 0) break;
  }
  for (Node& n : g.nodes)
    for (auto& [key, a] : n.attrs)
      if (GraphPtr* sub = std::get_if<GraphPtr>(&a)) {
        auto body = std::make_shared<Graph>((*sub)->clone());
        run_rules(*body, c);
        *sub = body;
      }
}

}  // namespace onnxtrain::portable
