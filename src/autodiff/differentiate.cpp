// The reverse walk.
#include <algorithm>
#include <map>

#include "autodiff/autodiff.hpp"
#include "op/grad_builder.hpp"

namespace onnxtrain {

namespace {

// Gradients flow along floating-point tensors and along containers of them.
bool carries_gradient(const TypeInfo& t) {
  switch (t.kind) {
    case TypeInfo::Kind::kUnknown:
      return true;
    case TypeInfo::Kind::kTensor:
      return t.elem == DType::kUndefined || dtype_is_differentiable(t.elem);
    case TypeInfo::Kind::kSequence:
    case TypeInfo::Kind::kOptional:
      return !t.inner || carries_gradient(*t.inner);
    default:
      return false;
  }
}

class Reverse {
 public:
  Reverse(Graph& g, const OpTable& table, int opset) : g_(g), table_(table), opset_(opset) {}

  std::vector<ValueId> run(const std::vector<ValueId>& ys, const std::vector<ValueId>& cotangents,
                           const std::vector<ValueId>& xs) {
    size_t count = g_.nodes.size();
    active_.assign(g_.values.size(), 0);
    for (ValueId x : xs) active_[size_t(x)] = 1;
    for (size_t k = 0; k < count; ++k) {
      bool any = false;
      for (ValueId v : g_.reads(g_.nodes[k])) any |= active_[size_t(v)] != 0;
      if (!any) continue;
      for (ValueId v : g_.nodes[k].outputs)
        if (v != kNone && carries_gradient(g_.value(v).type)) active_[size_t(v)] = 1;
    }
    is_x_.assign(g_.values.size(), 0);
    for (ValueId x : xs) is_x_[size_t(x)] = 1;
    GradBuilder seed(g_, table_, Node{}, {}, opset_);
    for (size_t k = 0; k < ys.size(); ++k) {
      if (!is_active(ys[k])) continue;
      ValueId c = k < cotangents.size() ? cotangents[k] : kNone;
      contributions_[ys[k]].push_back(c == kNone ? seed.ones_like(ys[k]) : c);
    }
    for (size_t k = count; k-- > 0;) visit(k);
    if (!blocked_.empty()) report_blocked();
    std::vector<ValueId> out;
    for (ValueId x : xs) out.push_back(total(x));
    return out;
  }

 private:
  bool is_active(ValueId v) const { return size_t(v) < active_.size() && active_[size_t(v)]; }

  // The sum of what has arrived at v so far; kNone if nothing has.
  ValueId total(ValueId v) {
    auto it = contributions_.find(v);
    if (it == contributions_.end() || it->second.empty()) return kNone;
    auto& list = it->second;
    if (list.size() > 1) {
      GradBuilder b(g_, table_, Node{}, {}, opset_);
      ValueId sum = list[0];
      for (size_t k = 1; k < list.size(); ++k) sum = b.add_gradients(sum, list[k]);
      list = {sum};
    }
    return list[0];
  }

  void visit(size_t k) {
    Node n = g_.nodes[k];  // a copy: rules append nodes
    std::vector<ValueId> dys;
    bool any = false;
    for (ValueId v : n.outputs) {
      dys.push_back(v == kNone ? kNone : total(v));
      any |= dys.back() != kNone;
    }
    if (!any) return;
    std::vector<char> wants;
    bool needed = false;
    for (ValueId v : n.inputs) {
      wants.push_back(v != kNone && is_active(v));
      needed |= wants.back() != 0;
    }
    for (ValueId v : g_.reads(n)) needed |= is_active(v);
    if (!needed) return;
    const Op& op = table_.get(n);
    if (!op.grad) {
      blocked_.push_back({k, op.no_grad ? op.no_grad : "its gradient is not written yet"});
      return;
    }
    ValueId known = ValueId(g_.values.size());  // what the rule makes has larger numbers
    GradBuilder b(g_, table_, n, dys, opset_);
    b.set_wants(wants);
    b.set_active(&active_);
    b.set_differentiate(&onnxtrain::differentiate);
    std::vector<ValueId> dxs;
    try {
      dxs = op.grad(b);
    } catch (Error& e) {
      e.add_place("in the gradient of " + n.label());
      throw;
    }
    // a rule may also add nodes in front of its own
    const std::vector<ValueId>& here = g_.nodes[k].outputs;
    if (std::find(here.begin(), here.end(), first_output(n)) == here.end()) {
      size_t moved = size_t(g_.producer_of(first_output(n))) - k;
      for (Blocked& bl : blocked_) bl.node += moved;
    }
    // a rule may return gradients of captured values after those of the inputs
    std::vector<ValueId> inputs = n.inputs;
    for (size_t i = n.inputs.size(); i < dxs.size(); ++i)
      inputs.push_back(captured(n, i - n.inputs.size()));
    for (size_t i = 0; i < dxs.size() && i < inputs.size(); ++i) {
      ValueId x = inputs[i], dx = dxs[i];
      if (x == kNone || dx == kNone || !is_active(x)) continue;
      if (op.broadcasts) dx = b.sum_to_shape_of(dx, x);
      // a gradient has the type of its value: say so where the rule could not know
      if (!g_.value(dx).type.concrete() && dx >= known) g_.value(dx).type = g_.value(x).type;
      contributions_[x].push_back(dx);
    }
  }

  static ValueId first_output(const Node& n) {
    for (ValueId v : n.outputs)
      if (v != kNone) return v;
    return kNone;
  }

  // The i-th captured value over all subgraphs of the node, in attribute order.
  ValueId captured(const Node& n, size_t i) const {
    for (const auto& [key, a] : n.attrs)
      if (const GraphPtr* sub = std::get_if<GraphPtr>(&a)) {
        if (i < (*sub)->captures.size()) return (*sub)->captures[i].outer;
        i -= (*sub)->captures.size();
      }
    return kNone;
  }

  struct Blocked {
    size_t node;
    std::string why;
  };

  // The way from the node to y, by the first active reader each time.
  std::string path_from(size_t k) const {
    std::string path = g_.nodes[k].name;
    std::vector<std::vector<NodeId>> users = g_.consumers();
    size_t at = k;
    for (int hops = 0; hops < 12; ++hops) {
      size_t next = at;
      for (ValueId v : g_.nodes[at].outputs)
        if (v != kNone && !users[size_t(v)].empty() && contributions_.count(v)) {
          next = size_t(users[size_t(v)][0]);
          break;
        }
      if (next == at || next >= active_.size()) break;
      path += " -> " + g_.nodes[next].name;
      at = next;
    }
    return path;
  }

  [[noreturn]] void report_blocked() const {
    std::reverse(const_cast<std::vector<Blocked>&>(blocked_).begin(),
                 const_cast<std::vector<Blocked>&>(blocked_).end());
    std::string text;
    for (const Blocked& b : blocked_) {
      const Node& n = g_.nodes[b.node];
      text += cat(text.empty() ? "" : "\n  ", "cannot train through operator '", n.op, "' (node '",
                  n.name, "', opset ", n.version, "): ", b.why, "\n    the loss depends on it by  ",
                  path_from(b.node));
    }
    throw Error(ErrorKind::kModel, "OT1203", text,
                "train on an earlier tensor, or freeze what lies before it");
  }

  Graph& g_;
  const OpTable& table_;
  int opset_;
  std::vector<char> active_, is_x_;
  std::map<ValueId, std::vector<ValueId>> contributions_;
  std::vector<Blocked> blocked_;
};

}  // namespace

std::vector<ValueId> differentiate(Graph& g, const OpTable& table, const std::vector<ValueId>& ys,
                                   const std::vector<ValueId>& cotangents,
                                   const std::vector<ValueId>& xs, int opset) {
  return Reverse(g, table, opset).run(ys, cotangents, xs);
}

}  // namespace onnxtrain
