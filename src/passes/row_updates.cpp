// Embeddings: an update that leaves a row with gradient 0 as it is (SGD and Adagrad without decay)
// reads and writes only the rows of its table that the step has read (ops/row_updates).
#include <algorithm>

#include "passes/passes.hpp"

namespace onnxtrain {

namespace {

// The form of an update that may go by rows; null: it may not.
const UpdateForm* form_of(const Node& n, const OpTable& table) {
  const Op* op = table.find(n);
  if (!op || !op->update || !op->update->by_rows || !op->update->leaves_rows(n)) return nullptr;
  const UpdateForm& f = *op->update;
  return int(n.inputs.size()) == f.scalars + 2 + f.states ? &f : nullptr;
}

class RowUpdates {
 public:
  RowUpdates(Graph& g, const PassContext& c)
      : g_(g), table_(c.table), readers_(g.consumers()), pinned_(g.values.size(), 0) {
    for (ValueId v : g.outputs) pinned_[size_t(v)] = 1;
    for (ValueId v : c.keep) pinned_[size_t(v)] = 1;
  }

  void run() {
    for (size_t k = 0; k < g_.nodes.size(); ++k)
      if (const UpdateForm* form = form_of(g_.nodes[k], table_)) try_one(g_.nodes[k], *form);
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

  void try_one(Node& update, const UpdateForm& form) {
    const size_t at = size_t(form.scalars) + 1;  // of the gradient
    if (!all_there(update)) return;
    const ValueId gradient = update.inputs[at];
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
    update.op = form.by_rows;
    update.domain = std::string(kOwnDomain);
    update.version = 1;
    update.inputs[at] = sums;
    update.inputs.push_back(rows);
  }

  Graph& g_;
  const OpTable& table_;
  std::vector<std::vector<NodeId>> readers_;
  std::vector<char> pinned_;
};

}  // namespace

void pass_row_updates(Graph& g, const PassContext& c) {
  g.renumber();
  RowUpdates(g, c).run();
}

}  // namespace onnxtrain
