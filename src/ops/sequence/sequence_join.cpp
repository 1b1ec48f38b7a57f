// Between tensors and sequences: SplitToSequence, ConcatFromSequence; and the own operators that
// their gradients and sums of gradients need: SplitLikeSequence, AddValues.
#include "core/budget.hpp"
#include "core/text_memory.hpp"
#include "op/grad_builder.hpp"
#include "ops/common/values.hpp"

namespace onnxtrain::ops {

namespace {

// Lengths of the pieces along the axis.
std::vector<int64_t> pieces(const ValueCtx& c, int64_t dim, bool& each) {
  each = !c.has(1);
  check_memory(size_t(dim) * sizeof(int64_t));
  if (each) return std::vector<int64_t>(size_t(dim), 1);
  const Tensor& split = c.tensor(1);
  std::vector<int64_t> v = split.to_ints();
  if (split.rank() == 0) {
    int64_t size = v[0];
    if (size <= 0)
      model_error("OT1144",
                  cat("split of SplitToSequence is ", size, ", expected a positive size"));
    std::vector<int64_t> out;
    for (int64_t at = 0; at < dim; at += size) out.push_back(std::min(size, dim - at));
    return out;
  }
  int64_t sum = 0;
  for (int64_t p : v) {
    if (p < 0 || p > dim) model_error("OT1144", cat("split of SplitToSequence has a piece of ", p));
    sum += p;
  }
  if (split.rank() != 1 || sum != dim)
    model_error("OT1144",
                cat("the pieces of SplitToSequence add up to ", sum, ", the dimension is ", dim));
  return v;
}

void run_split(ValueCtx& c) {
  const Tensor& x = c.tensor(0);
  int64_t axis = normalize_axis(c.node().i("axis", 0), x.rank(), "axis of SplitToSequence");
  bool each;
  std::vector<int64_t> sizes = pieces(c, x.shape()[size_t(axis)], each);
  check_memory(sizes.size() * kItemBytes + text_bytes(x));
  bool drop = each && c.node().i("keepdims", 1) == 0;
  auto s = std::make_shared<Sequence>();
  s->elem = x.dtype();
  int64_t at = 0;
  for (int64_t n : sizes) {
    Tensor part = slice(x, axis, at, n);
    if (drop) {
      Shape shape = part.shape();
      shape.erase(shape.begin() + axis);
      part = part.reshaped(shape);
    }
    s->items.push_back(part.clone());
    at += n;
  }
  c.out(0, s);
}

std::vector<Tensor> tensors_of(const Sequence& s) {
  std::vector<Tensor> parts;
  for (const Value& v : s.items) parts.push_back(tensor_of(v, "an element of the sequence"));
  return parts;
}

void run_concat(ValueCtx& c) {
  std::vector<Tensor> parts = tensors_of(sequence_in(c, 0));
  if (parts.empty()) model_error("OT1145", "ConcatFromSequence of an empty sequence");
  bool fresh = c.node().i("new_axis", 0) != 0;
  int64_t axis =
      normalize_axis(c.node().i("axis", 0), parts[0].rank() + fresh, "axis of ConcatFromSequence");
  for (const Tensor& p : parts)
    if (p.rank() != parts[0].rank())
      model_error("OT1132", cat("ConcatFromSequence joins shapes ", to_string(parts[0].shape()),
                                " and ", to_string(p.shape())));
  c.out(0, fresh ? stack(parts, axis, false, "ConcatFromSequence")
                 : concat(parts, axis, "ConcatFromSequence"));
}

// Cuts x into pieces of the shapes that the tensors of a sequence have: undoes ConcatFromSequence.
void run_split_like(ValueCtx& c) {
  const Tensor& x = c.tensor(0);
  const Sequence& like = sequence_in(c, 1);
  int64_t axis = normalize_axis(c.node().i("axis", 0), x.rank(), "axis");
  auto s = std::make_shared<Sequence>();
  s->elem = x.dtype();
  int64_t at = 0;
  for (const Value& v : like.items) {
    const Shape& shape = tensor_of(v, "an element of the sequence").shape();
    if (shape.size() != x.shape().size() || at + shape[size_t(axis)] > x.shape()[size_t(axis)])
      model_error("OT1132", "the gradient of ConcatFromSequence has another shape than its result");
    s->items.push_back(slice(x, axis, at, shape[size_t(axis)]).clone());
    at += shape[size_t(axis)];
  }
  c.out(0, s);
}

std::vector<ValueId> split_grad(GradBuilder& b) {
  bool drop = !b.has(1) && b.node().i("keepdims", 1) == 0;
  ValueId dx = b.call("ConcatFromSequence", {b.dy()},
                      {{"axis", b.node().i("axis", 0)}, {"new_axis", int64_t(drop)}});
  b.graph().value(dx).type = b.type(b.x(0));
  return {dx, kNone};
}

std::vector<ValueId> concat_grad(GradBuilder& b) {
  int64_t axis = b.node().i("axis", 0);
  ValueId ds;
  if (b.node().i("new_axis", 0)) {
    ds = b.call("SplitToSequence", {b.dy()}, {{"axis", axis}, {"keepdims", int64_t(0)}});
  } else {
    ds = b.own("SplitLikeSequence", {b.dy(), b.x(0)}, {{"axis", axis}});
  }
  b.graph().value(ds).type = b.type(b.x(0));
  return {ds};
}

// sizes = the axis of each tensor of the sequence, by SequenceMap; then an ordinary split
std::vector<ValueId> split_like_lower(GradBuilder& b) {
  int64_t axis = b.node().i("axis", 0);
  auto body = std::make_shared<Graph>();
  body->name = "axis_sizes";
  const TypeInfo& seq = b.type(b.x(1));
  ValueId in = body->add_value("piece", seq.inner ? TypeInfo(*seq.inner) : TypeInfo());
  body->inputs = {in};
  GradBuilder inner(*body, b.table(), Node{}, {}, b.opset());
  ValueId shape = inner.call("Shape", {in});
  ValueId size = inner.call("Gather", {shape, inner.constant_ints({axis})});
  body->value(size).type = TypeInfo::tensor(DType::kInt64, {1});
  body->outputs = {size};
  ValueId sizes = b.call("SequenceMap", {b.x(1)}, {{"body", GraphPtr(body)}});
  ValueId split = b.call("ConcatFromSequence", {sizes}, {{"axis", int64_t(0)}});
  return {b.call("SplitToSequence", {b.x(0), split}, {{"axis", axis}})};
}

std::vector<ValueId> split_like_grad(GradBuilder& b) {
  return {b.call("ConcatFromSequence", {b.dy()}, {{"axis", b.node().i("axis", 0)}}), kNone};
}

// ---------------------------------------------------------------- sums of gradients

Value add_values(const Value& a, const Value& b) {
  if (std::holds_alternative<std::monostate>(a)) return keep(b);
  if (std::holds_alternative<std::monostate>(b)) return keep(a);
  if (const Tensor* x = std::get_if<Tensor>(&a)) {
    const Tensor& y = tensor_of(b, "the other gradient");
    if (x->shape() != y.shape() || x->dtype() != y.dtype())
      model_error("OT1146", cat("gradients of shapes ", to_string(x->shape()), " and ",
                                to_string(y.shape()), " meet"));
    Tensor z(x->dtype(), x->shape());
    dispatch<float, double, Half, BFloat16>(x->dtype(), "a sum of gradients", [&]<class T>() {
      for (int64_t i = 0; i < z.size(); ++i)
        z.as<T>()[i] = T(compute_t<T>(x->as<T>()[i]) + compute_t<T>(y.as<T>()[i]));
    });
    return z;
  }
  const auto* s = std::get_if<std::shared_ptr<Sequence>>(&a);
  const auto* t = std::get_if<std::shared_ptr<Sequence>>(&b);
  if (!s || !t || (*s)->items.size() != (*t)->items.size())
    model_error("OT1146", "gradients of sequences of different lengths meet");
  auto out = std::make_shared<Sequence>();
  out->elem = (*s)->elem;
  for (size_t k = 0; k < (*s)->items.size(); ++k)
    out->items.push_back(add_values((*s)->items[k], (*t)->items[k]));
  return out;
}

void run_add(ValueCtx& c) {
  if (!c.has(0) || !c.has(1)) model_error("OT1107", "AddValues needs two inputs");
  c.out(0, add_values(*c.in(0), *c.in(1)));
}

std::vector<ValueId> add_grad(GradBuilder& b) { return {b.dy(), b.dy()}; }

std::vector<ValueId> add_lower(GradBuilder& b) {
  const TypeInfo& t = b.type(b.x(0));
  if (t.kind != TypeInfo::Kind::kSequence) return {b.add(b.x(0), b.x(1))};
  auto body = std::make_shared<Graph>();
  body->name = "add";
  TypeInfo item = t.inner ? TypeInfo(*t.inner) : TypeInfo();
  ValueId p = body->add_value("p", item), q = body->add_value("q", item);
  body->inputs = {p, q};
  GradBuilder inner(*body, b.table(), Node{}, {}, b.opset());
  ValueId sum = inner.add(p, q);
  body->value(sum).type = item;
  body->outputs = {sum};
  return {b.call("SequenceMap", {b.x(0), b.x(1)}, {{"body", GraphPtr(body)}})};
}

}  // namespace

void register_sequence_join(OpTable& t) {
  t.add({.name = "SplitToSequence", .run_values = run_split, .grad = split_grad});
  t.add({.name = "ConcatFromSequence", .run_values = run_concat, .grad = concat_grad});
  t.add({.name = "SplitLikeSequence",
         .domain = std::string(kOwnDomain),
         .run_values = run_split_like,
         .grad = split_like_grad,
         .lower = split_like_lower});
  t.add({.name = "AddValues",
         .domain = std::string(kOwnDomain),
         .run_values = run_add,
         .grad = add_grad,
         .lower = add_lower});
}

}  // namespace onnxtrain::ops
