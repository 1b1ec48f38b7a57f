// Own operators that gradient rules are written with: FillLike (a constant of another tensor's
// shape) and SumToShape (undoes broadcasting when shapes are known only at run time).
#include <cstring>

#include "ops/common/elementwise_kernel.hpp"

namespace onnxtrain::ops {

namespace {

Kernel make_fill(Prepare& p) {
  float value = p.node().f("value", 0);
  int64_t n = p.out(0).size();
  return dispatch<float, double, Half, BFloat16, int64_t, int32_t, bool>(
      p.out(0).dtype, "FillLike", [&]<class T>() -> Kernel {
        return [n, value](const Run& r) { std::fill_n(r.out<T>(0), n, T(compute_t<T>(value))); };
      });
}

Value filled_like(const Value& v, float value) {
  if (const Tensor* t = std::get_if<Tensor>(&v)) {
    Tensor y(t->dtype(), t->shape());
    dispatch<float, double, Half, BFloat16, int64_t, int32_t, bool>(
        t->dtype(), "FillLike",
        [&]<class T>() { std::fill_n(y.as<T>(), y.size(), T(compute_t<T>(value))); });
    return y;
  }
  if (const auto* s = std::get_if<std::shared_ptr<Sequence>>(&v); s && *s) {
    auto out = std::make_shared<Sequence>();
    out->elem = (*s)->elem;
    for (const Value& item : (*s)->items) out->items.push_back(filled_like(item, value));
    return out;
  }
  return {};
}

void run_fill(ValueCtx& c) {
  c.out(0, c.has(0) ? filled_like(*c.in(0), c.node().f("value", 0)) : Value());
}

std::vector<ValueId> fill_lower(GradBuilder& b) {
  if (const TypeInfo& t = b.type(b.x(0)); t.kind == TypeInfo::Kind::kSequence) {
    // item by item
    auto body = std::make_shared<Graph>();
    body->name = "fill";
    body->inputs = {body->add_value("item", t.inner ? TypeInfo(*t.inner) : TypeInfo())};
    Node item = b.node();
    item.inputs = body->inputs;
    GradBuilder inner(*body, b.table(), item, {}, b.opset());
    body->outputs = fill_lower(inner);
    body->value(body->outputs[0]).type = TypeInfo::tensor(inner.dtype(body->inputs[0]));
    return {b.call("SequenceMap", {b.x(0)}, {{"body", GraphPtr(body)}})};
  }
  Tensor one = dispatch<float, double, Half, BFloat16, int64_t, int32_t>(
      b.dtype(b.x(0)), "FillLike",
      [&]<class T>() { return Tensor::vector<T>({T(compute_t<T>(b.node().f("value", 0)))}); });
  return {b.call("ConstantOfShape", {b.shape_of(b.x(0))}, {{"value", one}})};
}

void sum_shape(ShapeCtx& c) { c.set(0, c.dtype(0), c.shape(1)); }

// Sums groups of elements that broadcasting made equal: for each target element in order.
Kernel make_sum_to(Prepare& p) {
  Shape from = p.in(0).shape, to = p.in(1).shape;
  Shape strides = broadcast_strides(to, from);  // also checks that `to` broadcasts to `from`
  int64_t n = num_elements(from), m = num_elements(to);
  return dispatch<float, double, Half, BFloat16>(
      p.in(0).dtype, "SumToShape", [&]<class T>() -> Kernel {
        using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
        p.workspace = size_t(m) * sizeof(C);
        return [=](const Run& r) {
          const T* x = r.in<T>(0);
          C* acc = static_cast<C*>(r.workspace);
          std::fill_n(acc, m, C(0));
          std::vector<int64_t> index(from.size(), 0);
          int64_t at = 0;
          for (int64_t i = 0; i < n; ++i) {
            acc[at] += C(x[i]);
            for (size_t d = from.size(); d-- > 0;) {
              at += strides[d];
              if (++index[d] < from[d]) break;
              at -= strides[d] * from[d];
              index[d] = 0;
            }
          }
          for (int64_t i = 0; i < m; ++i) r.out<T>(0)[i] = T(acc[i]);
        };
      });
}

// Ranks are known: an axis that may have been broadcast, n elements from m, is written [m, n/m] and
// its second part summed. The axes of the sums are then known, whatever sizes come.
ValueId sum_by_parts(GradBuilder& b, const std::vector<Dim>& from, const std::vector<Dim>& to) {
  const int64_t lead = int64_t(from.size() - to.size()), rank = int64_t(to.size());
  ValueId v = b.x(0);
  std::vector<int64_t> first;
  for (int64_t d = 0; d < lead; ++d) first.push_back(d);
  if (lead > 0) v = b.reduce_sum(v, first, false);
  const ValueId shape = b.call("Shape", {b.x(1)});
  auto size_of = [&](int64_t d) {
    const Dim& known = to[size_t(d)];
    if (known.known()) return b.constant_ints({known.value});
    return b.call("Gather", {shape, b.constant_ints({d})}, {{"axis", int64_t(0)}});
  };
  for (int64_t d = rank - 1; d >= 0; --d) {
    const Dim &x = from[size_t(d + lead)], &y = to[size_t(d)];
    if (x == y && (x.known() || !x.symbol.empty())) continue;
    if (y.value == 1) {
      v = b.reduce_sum(v, {d}, true);
      continue;
    }
    std::vector<ValueId> sizes;
    for (int64_t e = 0; e < d; ++e) sizes.push_back(b.constant_ints({0}));  // as it is
    sizes.push_back(size_of(d));
    sizes.push_back(b.constant_ints({-1}));
    for (int64_t e = d + 1; e < rank; ++e) sizes.push_back(size_of(e));
    const ValueId parts = b.call("Concat", sizes, {{"axis", int64_t(0)}});
    const GradBuilder::Attrs zero_copies{{"allowzero", int64_t(0)}};
    v = b.reduce_sum(
        b.call("Reshape", {v, parts}, b.opset() >= 14 ? zero_copies : GradBuilder::Attrs{}),
        {d + 1}, false);
  }
  return v;
}

// Ranks are open: axes are those where the padded target shape differs from the source's; found
// when the graph runs.
std::vector<ValueId> sum_to_lower(GradBuilder& b) {
  const TypeInfo x = b.type(b.x(0)), y = b.type(b.x(1));
  if (x.is_tensor() && x.shape && y.is_tensor() && y.shape && x.shape->size() >= y.shape->size())
    return {sum_by_parts(b, *x.shape, *y.shape)};
  ValueId from = b.call("Shape", {b.x(0)}), to = b.call("Shape", {b.x(1)});
  ValueId missing = b.sub(b.call("Shape", {from}), b.call("Shape", {to}));
  ValueId ones = b.call("ConstantOfShape", {missing}, {{"value", Tensor::vector<int64_t>({1})}});
  ValueId padded = b.call("Concat", {ones, to}, {{"axis", int64_t(0)}});
  ValueId axes =
      b.squeeze(b.call("NonZero", {b.call("Not", {b.call("Equal", {padded, from})})}), {0});
  ValueId sum = b.call("ReduceSum", {b.x(0), axes},
                       {{"keepdims", int64_t(1)}, {"noop_with_empty_axes", int64_t(1)}});
  return {b.call("Reshape", {sum, to})};
}

std::vector<ValueId> sum_to_grad(GradBuilder& b) { return {b.expand_like(b.dy(), b.x(0)), kNone}; }
std::vector<ValueId> fill_grad(GradBuilder&) { return {kNone}; }

}  // namespace

void register_fill(OpTable& t) {
  t.add({.name = "FillLike",
         .domain = std::string(kOwnDomain),
         .shape = shape_same,
         .impls = {{"ref", nullptr, make_fill}},
         .run_values = run_fill,
         .grad = fill_grad,
         .types_only = true,
         .lower = fill_lower});
  t.add({.name = "SumToShape",
         .domain = std::string(kOwnDomain),
         .shape = sum_shape,
         .impls = {{"ref", nullptr, make_sum_to}},
         .grad = sum_to_grad,
         .lower = sum_to_lower});
}

}  // namespace onnxtrain::ops
