// The reverse walk.
#include <algorithm>
#include <map>

#include "autodiff/deferred_gradient.hpp"
#include "autodiff/path.hpp"
#include "op/carries.hpp"
#include "op/grad_builder.hpp"
#include "op/needs_shape.hpp"

namespace onnxtrain {

namespace {

thread_local int names_alive = 0;  // GradientNames that live

// Operators without a derivative lie on the way.
class NoDerivative : public Error {
 public:
  explicit NoDerivative(std::string message)
      : Error(ErrorKind::kModel, "OT1203", std::move(message),
              "train on an earlier tensor, or freeze what lies before it") {}
};

class Reverse {
 public:
  Reverse(Graph& g, const OpTable& table, int opset) : g_(g), table_(table), opset_(opset) {}

  std::vector<ValueId> run(const std::vector<ValueId>& ys, const std::vector<ValueId>& cotangents,
                           const std::vector<ValueId>& xs) {
    expand_gradients(g_, table_, opset_);  // those of a body that is differentiated
    lower_between(g_, table_, ys, xs, opset_);
    size_t count = g_.nodes.size();
    active_ = depends_on(g_, xs);
    ys_ = ys;
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
    if (!op.grad && !n.is("DeferredGradient", kOwnDomain)) {
      blocked_.push_back(
          {first_output(n), op.no_grad ? op.no_grad : "its gradient is not written yet", ""});
      return;
    }
    ValueId known = ValueId(g_.values.size());  // what the rule makes has larger numbers
    GradBuilder b(g_, table_, n, dys, opset_);
    b.set_wants(wants);
    b.set_active(&active_);
    b.set_differentiate(&onnxtrain::differentiate);
    std::vector<ValueId> dxs;
    size_t before = g_.nodes.size();
    std::optional<NeedsShape> lacking;
    try {
      lacking = apply_rules([&] {
        dxs = op.grad ? op.grad(b) : deferred_gradient(g_, n, dys, wants, n.s("why", ""), opset_);
      });
    } catch (const NoDerivative& e) {  // inside a subgraph: told together with the others
      blocked_.push_back({first_output(n), "", e.message()});
      return;
    } catch (Error& e) {
      e.add_place("in the gradient of " + n.label());
      throw;
    }
    if (!lacking) {
      name_nodes(n, before);
      return add_gradients(n, op, b, std::move(dxs), known);
    }
    if (!can_defer(n, op)) {
      lacking->why.add_place("in the gradient of " + n.label());
      needs_shape(std::move(*lacking));
    }
    g_.nodes.resize(before);
    const std::string why = lacking->why.message();
    add_gradients(n, op, b, deferred_gradient(g_, n, dys, wants, why, opset_));
  }

  // A value that is not finite is traced to the node that its author knows.
  void name_nodes(const Node& n, size_t from) {
    if (names_alive == 0) return;
    std::string own = n.name;
    if (own.empty() && first_output(n) != kNone) own = g_.value_name(first_output(n));
    if (own.empty()) return;
    if (const size_t at = own.find(kGradientMark); at != std::string::npos) own.resize(at);
    for (size_t k = from; k < g_.nodes.size(); ++k) {
      std::string& name = g_.nodes[k].name;
      if (name.find(kGradientMark) == std::string::npos) name = cat(own, kGradientMark, name);
    }
  }

  // What a rule returned, to the values it belongs to. `known`: values from this number on are the
  // rule's own.
  void add_gradients(const Node& n, const Op& op, GradBuilder& b, std::vector<ValueId> dxs,
                     ValueId known = 0) {
    // a rule may return gradients of captured values after those of the inputs
    std::vector<ValueId> inputs = n.inputs;
    for (size_t i = n.inputs.size(); i < dxs.size(); ++i)
      inputs.push_back(captured(n, i - n.inputs.size()));
    for (size_t i = 0; i < dxs.size() && i < inputs.size(); ++i) {
      ValueId x = inputs[i], dx = dxs[i];
      if (x == kNone || dx == kNone || !is_active(x)) continue;
      if (op.broadcasts) dx = b.sum_to_shape_of(dx, x);
      // a gradient has the type of its value: say so where the rule could not know
      const TypeInfo& type = g_.value(x).type;
      if (!g_.value(dx).type.concrete() && dx >= known && carries_gradient(type))
        g_.value(dx).type = type;
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
    ValueId output;           // names the node: rules may move it
    std::string why, nested;  // nested: the whole message of a subgraph
  };

  // Nodes without derivative that lie before one that was found: nothing arrived there.
  void add_hidden() {
    std::vector<char> behind(active_.size(), 0);
    for (const Blocked& b : blocked_)
      for (ValueId v : g_.reads(g_.nodes[size_t(g_.producer_of(b.output))])) mark(behind, v);
    for (size_t k = g_.nodes.size(); k-- > 0;) {
      const Node& n = g_.nodes[k];
      ValueId v = first_output(n);
      bool any = std::any_of(n.outputs.begin(), n.outputs.end(), [&](ValueId o) {
        return o != kNone && size_t(o) < behind.size() && behind[size_t(o)];
      });
      if (!any) continue;
      for (ValueId r : g_.reads(n)) mark(behind, r);
      const Op& op = table_.get(n);
      bool known = std::any_of(blocked_.begin(), blocked_.end(),
                               [&](const Blocked& b) { return b.output == v; });
      if (!op.grad && op.no_grad && !known) blocked_.push_back({v, op.no_grad, ""});
    }
  }
  void mark(std::vector<char>& set, ValueId v) const {
    if (is_active(v)) set[size_t(v)] = 1;
  }

  [[noreturn]] void report_blocked() {
    add_hidden();
    std::sort(blocked_.begin(), blocked_.end(), [&](const Blocked& a, const Blocked& b) {
      return g_.producer_of(a.output) < g_.producer_of(b.output);
    });
    std::string text;
    for (const Blocked& b : blocked_) {
      size_t k = size_t(g_.producer_of(b.output));
      const Node& n = g_.nodes[k];
      text += text.empty() ? "" : "\n  ";
      if (!b.nested.empty()) {
        text += cat(b.nested, "\n    inside ", n.label());
      } else {
        text += cat("cannot train through operator '", n.op, "' (node '", n.name, "', opset ",
                    n.version, "): ", b.why);
      }
      text += "\n    the loss depends on it by  " + path_text(g_, k, active_, ys_);
    }
    throw NoDerivative(text);
  }

  Graph& g_;
  const OpTable& table_;
  int opset_;
  std::vector<char> active_;
  std::vector<ValueId> ys_;
  std::map<ValueId, std::vector<ValueId>> contributions_;
  std::vector<Blocked> blocked_;
};

}  // namespace

GradientNames::GradientNames() { ++names_alive; }
GradientNames::~GradientNames() { --names_alive; }

std::vector<ValueId> differentiate(Graph& g, const OpTable& table, const std::vector<ValueId>& ys,
                                   const std::vector<ValueId>& cotangents,
                                   const std::vector<ValueId>& xs, int opset) {
  return Reverse(g, table, opset).run(ys, cotangents, xs);
}

}  // namespace onnxtrain
