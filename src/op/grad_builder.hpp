// What a gradient rule is written with. Reading is saving: x(i) and y(i) mark the tensor as alive
// for the backward pass, so no second list exists.
//
//   std::vector<ValueId> mul_grad(GradBuilder& b) {
//     return {b.call("Mul", {b.dy(), b.x(1)}), b.call("Mul", {b.dy(), b.x(0)})};
//   }
#pragma once
#include <initializer_list>

#include "op/op.hpp"

namespace onnxtrain {

class GradBuilder {
 public:
  using Attrs = Attributes;

  // New nodes are appended to `g`. dys: one per output, kNone = no gradient.
  GradBuilder(Graph& g, const OpTable& table, Node node, std::vector<ValueId> dys, int opset);

  const Node& node() const { return node_; }
  int inputs() const { return int(node_.inputs.size()); }
  bool has(int i) const { return i < inputs() && node_.inputs[size_t(i)] != kNone; }
  ValueId x(int i) const { return node_.inputs[size_t(i)]; }
  ValueId y(int i = 0) const { return node_.outputs[size_t(i)]; }
  // Gradient of the loss with respect to output i; zeros are made when nothing flows there.
  ValueId dy(int i = 0);
  bool has_dy(int i) const { return i < int(dys_.size()) && dys_[size_t(i)] != kNone; }
  // false: nobody asks for the gradient of input i (saves work; returning one is still fine)
  bool wants(int i) const {
    return wants_.empty() || (i < int(wants_.size()) && wants_[size_t(i)]);
  }
  void set_wants(std::vector<char> w) { wants_ = std::move(w); }
  // The same question for any value of the graph (captured ones).
  bool wants_value(ValueId v) const {
    return !active_ || (size_t(v) < active_->size() && (*active_)[size_t(v)]);
  }
  void set_active(const std::vector<char>* active) { active_ = active; }

  // Types as far as they are known.
  const TypeInfo& type(ValueId v) const { return g_.value(v).type; }
  DType dtype(ValueId v) const { return type(v).elem; }
  bool shape_known(ValueId v) const { return type(v).concrete(); }
  Shape shape(ValueId v) const { return type(v).concrete_shape(); }
  // Rank if known, else -1; need_rank throws a model error that names node and value.
  int64_t rank(ValueId v) const;
  int64_t need_rank(ValueId v) const;
  // The constant behind v, or null.
  const Tensor* constant(ValueId v) const;

  // Adds a node of the standard domain (or "domain::Op") and returns its first output.
  ValueId call(std::string_view op, std::vector<ValueId> in, Attrs attrs = {});
  std::vector<ValueId> call_n(std::string_view op, std::vector<ValueId> in, int outputs,
                              Attrs attrs = {});
  // Our own domain.
  ValueId own(std::string_view op, std::vector<ValueId> in, Attrs attrs = {});
  std::vector<ValueId> own_n(std::string_view op, std::vector<ValueId> in, int outputs,
                             Attrs attrs = {});

  ValueId constant_ints(const std::vector<int64_t>& v);  // 1-D int64
  ValueId constant_int(int64_t v);                       // scalar int64
  // A scalar of the element type of `like`.
  ValueId scalar(double v, ValueId like);
  ValueId scalar(double v, DType t);
  ValueId tensor(Tensor t);

  // Shorthands.
  ValueId add(ValueId a, ValueId b) { return call("Add", {a, b}); }
  ValueId sub(ValueId a, ValueId b) { return call("Sub", {a, b}); }
  ValueId mul(ValueId a, ValueId b) { return call("Mul", {a, b}); }
  ValueId div(ValueId a, ValueId b) { return call("Div", {a, b}); }
  ValueId neg(ValueId a) { return call("Neg", {a}); }
  ValueId reduce_sum(ValueId v, const std::vector<int64_t>& axes, bool keepdims = true);
  ValueId transpose(ValueId v, const std::vector<int64_t>& perm);
  ValueId unsqueeze(ValueId v, const std::vector<int64_t>& axes);
  ValueId squeeze(ValueId v, const std::vector<int64_t>& axes);
  ValueId shape_of(ValueId v);                    // int64 tensor; a constant when known
  ValueId reshape_like(ValueId v, ValueId like);  // same elements, shape of `like`
  ValueId expand_like(ValueId v, ValueId like);
  ValueId sum_to_shape_of(ValueId v, ValueId like);  // undo broadcasting; nothing when equal
  ValueId zeros_like(ValueId v);
  ValueId ones_like(ValueId v);
  ValueId cast_like(ValueId v, ValueId like);  // nothing when types are equal
  // The sum of two gradients of one value: tensors, or sequences item by item.
  ValueId add_gradients(ValueId a, ValueId b);

  // Rules of operators with subgraphs differentiate those themselves: gradients, as values of
  // `sub`, of <cotangents, ys> with respect to xs; kNone where nothing flows. The reverse walk
  // that calls the rule provides the function.
  using Differentiate = std::vector<ValueId> (*)(Graph& sub, const OpTable& table,
                                                 const std::vector<ValueId>& ys,
                                                 const std::vector<ValueId>& cotangents,
                                                 const std::vector<ValueId>& xs, int opset);
  std::vector<ValueId> differentiate(Graph& sub, const std::vector<ValueId>& ys,
                                     const std::vector<ValueId>& cotangents,
                                     const std::vector<ValueId>& xs) const;
  void set_differentiate(Differentiate f) { differentiate_ = f; }

  Graph& graph() { return g_; }
  const OpTable& table() const { return table_; }
  int opset() const { return opset_; }

 private:
  Graph& g_;
  const OpTable& table_;
  Node node_;  // a copy: appending nodes moves the graph's own
  std::vector<ValueId> dys_;
  std::vector<char> wants_;
  const std::vector<char>* active_ = nullptr;
  Differentiate differentiate_ = nullptr;
  int opset_;
};

// Gradient builders that many operators share.
std::vector<ValueId> grad_passes_through(GradBuilder& b);  // {dy}: Identity-like

}  // namespace onnxtrain
