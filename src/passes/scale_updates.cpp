// Clipping and loss scaling: where a gradient is multiplied by one number and goes into an update,
// the update multiplies as it reads. Saves writing and reading every gradient once more.
#include <algorithm>

#include "passes/passes.hpp"
#include "passes/updates.hpp"

namespace onnxtrain {

namespace {

class Scales {
 public:
  Scales(Graph& g, const PassContext& c)
      : g_(g), table_(c.table), readers_(g.consumers()), pinned_(g.values.size(), 0) {
    for (ValueId v : g.outputs) pinned_[size_t(v)] = 1;
    for (ValueId v : c.keep) pinned_[size_t(v)] = 1;
  }

  void run() {
    for (Node& n : g_.nodes)
      if (const UpdateForm* form = update_form(n, table_)) try_one(n, *form);
  }

 private:
  bool is_float(ValueId v) const {
    const TypeInfo& t = g_.value(v).type;
    return t.concrete() && t.elem == DType::kFloat;
  }
  bool one_number(ValueId v) const {
    return is_float(v) && num_elements(g_.value(v).type.concrete_shape()) == 1;
  }

  // One tensor, all results wanted, everything float: what the vector updates take.
  bool fits(const Node& n, const UpdateForm& form) const {
    if (int(n.inputs.size()) != form.scalars + 2 + form.states) return false;
    if (int(n.outputs.size()) != 1 + form.states) return false;
    return std::all_of(n.inputs.begin() + form.scalars, n.inputs.end(),
                       [&](ValueId v) { return v != kNone && is_float(v); }) &&
           std::all_of(n.outputs.begin(), n.outputs.end(), [](ValueId v) { return v != kNone; });
  }

  void try_one(Node& update, const UpdateForm& form) {
    if (update.i(kScaled, 0) || !fits(update, form)) return;
    ValueId& gradient = update.inputs[size_t(form.scalars) + 1];
    const NodeId by = g_.value(gradient).producer;
    if (by < 0 || pinned_[size_t(gradient)] || readers_[size_t(gradient)].size() != 1) return;
    const Node& product = g_.nodes[size_t(by)];
    if (!product.is("Mul", "") || product.inputs.size() != 2) return;
    size_t factor = one_number(product.inputs[1]) ? 1 : 0;
    const ValueId rest = product.inputs[1 - factor];
    if (!one_number(product.inputs[factor]) || !is_float(rest)) return;
    if (g_.value(rest).type.concrete_shape() != g_.value(gradient).type.concrete_shape()) return;
    gradient = rest;
    update.inputs.push_back(product.inputs[factor]);
    update.attrs[kScaled] = int64_t(1);
    if (update.domain != kOwnDomain) return;
    update.attrs["rule"] = update.op;
    update.op = "MultiUpdate";
  }

  Graph& g_;
  const OpTable& table_;
  std::vector<std::vector<NodeId>> readers_;
  std::vector<char> pinned_;
};

}  // namespace

void pass_scale_updates(Graph& g, const PassContext& c) {
  g.renumber();
  Scales(g, c).run();
  pass_dead(g, c);
}

}  // namespace onnxtrain
