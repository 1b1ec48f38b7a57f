// Building blocks of gradient rules.
#include "op/grad_builder.hpp"

#include <algorithm>
#include <optional>

#include "op/needs_shape.hpp"

namespace onnxtrain {

GradBuilder::GradBuilder(Graph& g, const OpTable& table, Node node, std::vector<ValueId> dys,
                         int opset)
    : g_(g), table_(table), node_(std::move(node)), dys_(std::move(dys)), opset_(opset) {}

ValueId GradBuilder::dy(int i) {
  dys_.resize(std::max(dys_.size(), size_t(i) + 1), kNone);
  if (dys_[size_t(i)] == kNone) dys_[size_t(i)] = zeros_like(y(i));
  return dys_[size_t(i)];
}

int64_t GradBuilder::rank(ValueId v) const {
  const TypeInfo& t = type(v);
  return t.is_tensor() && t.shape ? int64_t(t.shape->size()) : -1;
}

int64_t GradBuilder::need_rank(ValueId v) const {
  int64_t r = rank(v);
  if (r < 0)
    needs_shape("OT1205",
                cat("the gradient of ", node_.label(), " needs the rank of '", g_.value_name(v),
                    "', which the file does not say"),
                "give the model's inputs a shape, e.g. [N,3,H,W]");
  return r;
}

const Tensor* GradBuilder::constant(ValueId v) const {
  if (v == kNone) return nullptr;
  const ValueDef& d = g_.value(v);
  return d.is_constant() ? &d.constant : nullptr;
}

namespace {
// Truth values and positions carry no gradient: their element type is known without any shape.
void settle_element(Graph& g, const Node& n) {
  TypeInfo& t = g.value(n.outputs[0]).type;
  if (!n.domain.empty() || t.kind != TypeInfo::Kind::kUnknown) return;
  auto is = [&](std::initializer_list<std::string_view> list) {
    return std::find(list.begin(), list.end(), n.op) != list.end();
  };
  if (is({"Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "And", "Or", "Not"}))
    t = TypeInfo::tensor(DType::kBool);
  else if (is({"Shape", "Size", "ArgMax", "ArgMin", "NonZero", "SequenceLength"}))
    t = TypeInfo::tensor(DType::kInt64);
}
}  // namespace

std::vector<ValueId> GradBuilder::call_n(std::string_view op, std::vector<ValueId> in, int outputs,
                                         Attrs attrs) {
  Node n;
  size_t colons = op.find("::");
  if (colons == std::string_view::npos) {
    n.op = op;
    n.version = opset_;
  } else {
    n.domain = op.substr(0, colons);
    n.op = op.substr(colons + 2);
    n.version = 1;
  }
  n.inputs = std::move(in);
  n.attrs = std::move(attrs);
  // rules mean what they write: 0 is an empty dimension, not a copy
  if (n.op == "Reshape" && n.domain.empty() && opset_ >= 14 && !n.has("allowzero") &&
      n.inputs.size() == 2) {
    const Tensor* shape = constant(n.inputs[1]);
    std::vector<int64_t> to = shape ? shape->to_ints() : std::vector<int64_t>{};
    bool inferred = std::find(to.begin(), to.end(), -1) != to.end();
    if (!inferred && (!shape || std::find(to.begin(), to.end(), 0) != to.end()))
      n.attrs["allowzero"] = int64_t(1);
  }
  std::vector<ValueId> outs = g_.add_node(std::move(n), outputs);
  Node& added = g_.nodes.back();
  added.name = g_.value_name(outs[0]);
  infer_node(g_, added, table_);
  settle_element(g_, Node(added));
  return outs;
}

ValueId GradBuilder::call(std::string_view op, std::vector<ValueId> in, Attrs attrs) {
  return call_n(op, std::move(in), 1, std::move(attrs))[0];
}

ValueId GradBuilder::own(std::string_view op, std::vector<ValueId> in, Attrs attrs) {
  return call(cat(kOwnDomain, "::", op), std::move(in), std::move(attrs));
}

std::vector<ValueId> GradBuilder::own_n(std::string_view op, std::vector<ValueId> in, int outputs,
                                        Attrs attrs) {
  return call_n(cat(kOwnDomain, "::", op), std::move(in), outputs, std::move(attrs));
}

ValueId GradBuilder::tensor(Tensor t) { return g_.add_constant(std::move(t)); }
ValueId GradBuilder::constant_ints(const std::vector<int64_t>& v) {
  return tensor(Tensor::vector<int64_t>(v));
}
ValueId GradBuilder::constant_int(int64_t v) { return tensor(Tensor::scalar<int64_t>(v)); }
ValueId GradBuilder::scalar(double v, ValueId like) { return scalar(v, dtype(like)); }

ValueId GradBuilder::scalar(double v, DType t) {
  if (t == DType::kUndefined)
    needs_shape("OT1205", cat("the gradient of ", node_.label(),
                              " needs the element type of a "
                              "tensor, which the file does not say"));
  return tensor(dispatch<float, double, Half, BFloat16, int32_t, int64_t, bool>(
      t, "a gradient rule", [&]<class T>() { return Tensor::scalar<T>(T(compute_t<T>(v))); }));
}

ValueId GradBuilder::reduce_sum(ValueId v, const std::vector<int64_t>& axes, bool keepdims) {
  if (axes.empty()) return v;
  if (opset_ >= 13)
    return call("ReduceSum", {v, constant_ints(axes)}, {{"keepdims", int64_t(keepdims)}});
  return call("ReduceSum", {v}, {{"axes", axes}, {"keepdims", int64_t(keepdims)}});
}

ValueId GradBuilder::transpose(ValueId v, const std::vector<int64_t>& perm) {
  return call("Transpose", {v}, {{"perm", perm}});
}

ValueId GradBuilder::unsqueeze(ValueId v, const std::vector<int64_t>& axes) {
  if (opset_ >= 13) return call("Unsqueeze", {v, constant_ints(axes)});
  return call("Unsqueeze", {v}, {{"axes", axes}});
}

ValueId GradBuilder::squeeze(ValueId v, const std::vector<int64_t>& axes) {
  if (opset_ >= 13) return call("Squeeze", {v, constant_ints(axes)});
  return call("Squeeze", {v}, {{"axes", axes}});
}

ValueId GradBuilder::shape_of(ValueId v) {
  if (shape_known(v)) return constant_ints(shape(v));
  return call("Shape", {v});
}

namespace {
// Reshape and Expand by a shape computed at run time: the result's type is known all the same.
ValueId with_shape_of(Graph& g, ValueId like, ValueId from, ValueId v) {
  const TypeInfo &shape = g.value(like).type, &elem = g.value(from).type;
  TypeInfo& t = g.value(v).type;
  if ((t.is_tensor() && t.shape) || !shape.is_tensor() || !shape.shape || !elem.is_tensor())
    return v;
  t = TypeInfo::tensor(elem.elem);
  t.shape = shape.shape;
  return v;
}
}  // namespace

ValueId GradBuilder::reshape_like(ValueId v, ValueId like) {
  if (shape_known(v) && shape_known(like) && shape(v) == shape(like)) return v;
  Attrs a;
  // sizes of zero must be taken literally
  if (opset_ >= 14) a["allowzero"] = int64_t(1);
  return with_shape_of(g_, like, v, call("Reshape", {v, shape_of(like)}, std::move(a)));
}

ValueId GradBuilder::expand_like(ValueId v, ValueId like) {
  if (shape_known(v) && shape_known(like) && shape(v) == shape(like)) return v;
  return with_shape_of(g_, like, v, call("Expand", {v, shape_of(like)}));
}

namespace {

// Axes along which `from` was broadcast from `to`, when sizes that are not numbers still decide it.
std::optional<std::vector<int64_t>> summed_axes(const TypeInfo& from, const TypeInfo& to) {
  if (!from.shape || !to.shape || from.shape->size() < to.shape->size()) return std::nullopt;
  std::vector<int64_t> axes;
  size_t lead = from.shape->size() - to.shape->size();
  for (size_t d = 0; d < from.shape->size(); ++d) {
    if (d < lead) {
      axes.push_back(int64_t(d));
      continue;
    }
    const Dim &x = (*from.shape)[d], &y = (*to.shape)[d - lead];
    if (x == y && (x.known() || !x.symbol.empty())) continue;
    if (y.value != 1) return std::nullopt;
    axes.push_back(int64_t(d));
  }
  return axes;
}

}  // namespace

ValueId GradBuilder::sum_to_shape_of(ValueId v, ValueId like) {
  const TypeInfo &a = type(v), &b = type(like);
  if (a.concrete() && b.concrete()) {
    Shape from = a.concrete_shape(), to = b.concrete_shape();
    if (from == to) return v;
    std::vector<int64_t> axes;
    size_t lead = from.size() - to.size();
    for (size_t d = 0; d < from.size(); ++d)
      if (d < lead || (to[d - lead] == 1 && from[d] != 1)) axes.push_back(int64_t(d));
    ValueId r = reduce_sum(v, axes, true);
    return lead ? reshape_like(r, like) : r;
  }
  if (std::optional<std::vector<int64_t>> axes = summed_axes(a, b)) {
    if (axes->empty()) return v;
    bool shorter = a.shape->size() != b.shape->size();  // before new nodes move the types
    ValueId r = reduce_sum(v, *axes, true);
    return shorter ? reshape_like(r, like) : r;
  }
  return own("SumToShape", {v, like});
}

ValueId GradBuilder::zeros_like(ValueId v) {
  ValueId zeros = own("FillLike", {v}, {{"value", 0.0f}});
  if (!type(zeros).concrete()) g_.value(zeros).type = type(v);
  return zeros;
}

ValueId GradBuilder::ones_like(ValueId v) {
  ValueId ones = own("FillLike", {v}, {{"value", 1.0f}});
  if (!type(ones).concrete()) g_.value(ones).type = type(v);
  return ones;
}

ValueId GradBuilder::cast_like(ValueId v, ValueId like) {
  if (dtype(v) == dtype(like) && dtype(v) != DType::kUndefined) return v;
  if (dtype(like) == DType::kUndefined) return call("CastLike", {v, like});
  return call("Cast", {v}, {{"to", int64_t(dtype(like))}});
}

ValueId GradBuilder::add_gradients(ValueId x, ValueId y) {
  auto is_tensor = [&](ValueId v) { return type(v).is_tensor(); };
  if (is_tensor(x) || is_tensor(y)) return add(x, y);
  ValueId sum = own("AddValues", {x, y});
  g_.value(sum).type = type(x);
  return sum;
}

std::vector<ValueId> GradBuilder::differentiate(Graph& sub, const std::vector<ValueId>& ys,
                                                const std::vector<ValueId>& cotangents,
                                                const std::vector<ValueId>& xs) const {
  OT_ASSERT(differentiate_);
  return differentiate_(sub, table_, ys, cotangents, xs, opset_);
}

std::vector<ValueId> grad_passes_through(GradBuilder& b) { return {b.dy()}; }

}  // namespace onnxtrain
