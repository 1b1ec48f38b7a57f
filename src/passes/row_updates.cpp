// Embeddings: an update that leaves a row with gradient 0 as it is (SGD and Adagrad without decay)
// reads and writes only the rows of its table that the step has read (ops/row_updates).
#include <algorithm>

#include "passes/passes.hpp"

namespace onnxtrain {

namespace {

// Places of the operands of an update that may go by rows.
struct Form {
  const char* op;  // what it becomes
  size_t x, g;
};

bool without_decay(const Node& n) {
  const Tensor* t = n.tensor("decay");
  return !t || t->to_doubles().at(0) == 0;
}

const Form* form_of(const Node& n) {
  static constexpr Form kSgd{"SgdRows", 1, 2}, kAdagrad{"AdagradRows", 2, 3};
  if (n.is("Sgd", kOwnDomain) && without_decay(n)) return &kSgd;
  if (n.is("Adagrad", kTrainingDomain) && n.inputs.size() == 5 && n.f("norm_coefficient", 0) == 0 &&
      n.f("epsilon", 1e-6f) > 0)
    return &kAdagrad;
  return nullptr;
}

class RowUpdates {
 public:
  RowUpdates(Graph& g, const std::vector<ValueId>& keep)
      : g_(g), readers_(g.consumers()), pinned_(g.values.size(), 0) {
    for (ValueId v : g.outputs) pinned_[size_t(v)] = 1;
    for (ValueId v : keep) pinned_[size_t(v)] = 1;
  }

  void run() {
    for (size_t k = 0; k < g_.nodes.size(); ++k)
      if (const Form* form = form_of(g_.nodes[k])) try_one(g_.nodes[k], *form);
  }

 private:
  const TypeInfo& type(ValueId v) const { return g_.value(v).type; }

  bool all_there(const Node& n) const {
    auto there = [](ValueId v) { return v != kNone; };
    return std::all_of(n.inputs.begin(), n.inputs.end(), there) &&
           std::all_of(n.outputs.begin(), n.outputs.end(), there);
  }

  // The gradient of a whole table by its first dimension that nobody else reads.
  bool is_of_rows(const Node& made, ValueId gradient) const {
    if (!made.is("GatherGrad", kOwnDomain)) return false;
    const TypeInfo& t = type(gradient);
    if (!t.concrete() || t.elem != DType::kFloat || pinned_[size_t(gradient)]) return false;
    const Shape s = t.concrete_shape();
    const int64_t axis = made.i("axis", 0);
    if (s.empty() || (axis != 0 && axis != -int64_t(s.size()))) return false;
    const TypeInfo& indices = type(made.inputs[1]);
    if (!indices.concrete() || readers_[size_t(gradient)].size() != 1) return false;
    const int64_t n = num_elements(indices.concrete_shape());
    return n > 0 && 2 * n <= s[0];  // else the whole table costs no more
  }

  void try_one(Node& update, const Form& form) {
    if (update.inputs.size() <= form.g || !all_there(update)) return;
    const ValueId gradient = update.inputs[form.g];
    const NodeId by = g_.value(gradient).producer;
    if (by < 0 || !is_of_rows(g_.nodes[size_t(by)], gradient)) return;
    Node& made = g_.nodes[size_t(by)];
    const int64_t n = num_elements(type(made.inputs[1]).concrete_shape());
    const std::string name = g_.value(gradient).name;
    const ValueId sums = g_.add_value(g_.unique_name(name + "_rows"), type(made.inputs[0]));
    const ValueId rows =
        g_.add_value(g_.unique_name(name + "_places"), TypeInfo::tensor(DType::kInt64, {n}));
    made.op = "RowSums";
    made.attrs = {{"size", type(gradient).concrete_shape()[0]}};
    made.inputs.resize(2);
    made.outputs = {sums, rows};
    update.op = form.op;
    update.domain = std::string(kOwnDomain);
    update.version = 1;
    update.inputs[form.g] = sums;
    update.inputs.push_back(rows);
  }

  Graph& g_;
  std::vector<std::vector<NodeId>> readers_;
  std::vector<char> pinned_;
};

}  // namespace

void pass_row_updates(Graph& g, const PassContext& c) {
  g.renumber();
  RowUpdates(g, c.keep).run();
}

}  // namespace onnxtrain
