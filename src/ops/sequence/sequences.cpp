// Sequences of tensors: SequenceConstruct, SequenceEmpty, SequenceAt, SequenceInsert,
// SequenceErase, SequenceLength. The gradient of a sequence is a sequence of gradients.
#include "op/grad_builder.hpp"
#include "ops/common/values.hpp"

namespace onnxtrain::ops {

namespace {

// A position, possibly negative, in a sequence with `places` valid places.
size_t position(int64_t p, size_t places, int64_t length) {
  int64_t at = p < 0 ? p + length : p;
  if (at < 0 || at >= int64_t(places))
    model_error("OT1140", cat("position ", p, " is outside a sequence of length ", length));
  return size_t(at);
}

void run_construct(ValueCtx& c) {
  auto s = std::make_shared<Sequence>();
  for (int i = 0; i < c.inputs(); ++i) {
    const Tensor& t = c.tensor(i);
    if (i == 0) s->elem = t.dtype();
    if (t.dtype() != s->elem)
      model_error("OT1141", cat("a sequence of ", dtype_name(s->elem), " cannot hold ",
                                dtype_name(t.dtype())));
    s->items.push_back(keep(t));
  }
  c.out(0, s);
}

void run_empty(ValueCtx& c) {
  int64_t t = c.node().i("dtype", int64_t(DType::kFloat));
  if (t <= 0 || t >= kDTypeCount)
    model_error("OT1106", cat("dtype ", t, " is not an element type"));
  auto s = std::make_shared<Sequence>();
  s->elem = DType(t);
  c.out(0, s);
}

void run_at(ValueCtx& c) {
  const Sequence& s = sequence_in(c, 0);
  if (!c.has(1)) model_error("OT1107", "input 1 is missing");
  c.out(0, s.items[position(int_in(c, 1, 0), s.items.size(), int64_t(s.items.size()))]);
}

void run_insert(ValueCtx& c) {
  const Sequence& s = sequence_in(c, 0);
  const Tensor& t = c.tensor(1);
  if (s.elem != DType::kUndefined && t.dtype() != s.elem && !s.items.empty())
    model_error("OT1141",
                cat("a sequence of ", dtype_name(s.elem), " cannot hold ", dtype_name(t.dtype())));
  int64_t n = int64_t(s.items.size());
  size_t at = position(int_in(c, 2, n), s.items.size() + 1, n);
  auto out = std::make_shared<Sequence>();
  out->elem = t.dtype();
  out->items.reserve(s.items.size() + 1);
  out->items.assign(s.items.begin(), s.items.begin() + long(at));
  out->items.push_back(keep(t));
  out->items.insert(out->items.end(), s.items.begin() + long(at), s.items.end());
  c.out(0, out);
}

void run_erase(ValueCtx& c) {
  const Sequence& s = sequence_in(c, 0);
  int64_t n = int64_t(s.items.size());
  size_t at = position(int_in(c, 1, n - 1), s.items.size(), n);
  auto out = std::make_shared<Sequence>(s);
  out->items.erase(out->items.begin() + long(at));
  c.out(0, out);
}

void run_length(ValueCtx& c) {
  c.out(0, Tensor::scalar<int64_t>(int64_t(sequence_in(c, 0).items.size())));
}

// ---------------------------------------------------------------- gradients

// The position counted from the front, given the length of the sequence it refers to.
ValueId from_front(GradBuilder& b, ValueId pos, ValueId length) {
  if (const Tensor* t = b.constant(pos); t && t->size() == 1 && t->to_ints()[0] >= 0) return pos;
  ValueId p = b.call("Cast", {pos}, {{"to", int64_t(DType::kInt64)}});
  return b.call("Where", {b.call("Less", {p, b.constant_int(0)}), b.add(p, length), p});
}

void set_type(GradBuilder& b, ValueId v, const TypeInfo& t) { b.graph().value(v).type = t; }
// The same kind of value as `like`.
ValueId typed(GradBuilder& b, ValueId v, ValueId like) {
  set_type(b, v, b.type(like));
  return v;
}

std::vector<ValueId> construct_grad(GradBuilder& b) {
  std::vector<ValueId> g;
  for (int i = 0; i < b.inputs(); ++i)
    g.push_back(b.wants(i) ? typed(b, b.call("SequenceAt", {b.dy(), b.constant_int(i)}), b.x(i))
                           : kNone);
  return g;
}

std::vector<ValueId> empty_grad(GradBuilder&) { return {}; }

std::vector<ValueId> at_grad(GradBuilder& b) {
  ValueId pos = from_front(b, b.x(1), b.call("SequenceLength", {b.x(0)}));
  ValueId rest = typed(b, b.call("SequenceErase", {b.zeros_like(b.x(0)), pos}), b.x(0));
  return {typed(b, b.call("SequenceInsert", {rest, b.dy(), pos}), b.x(0)), kNone};
}

std::vector<ValueId> insert_grad(GradBuilder& b) {
  ValueId dy = b.dy();
  std::vector<ValueId> at = {dy}, erase = {dy};
  if (b.has(2)) {
    ValueId pos = from_front(b, b.x(2), b.call("SequenceLength", {b.x(0)}));
    at.push_back(pos);
    erase.push_back(pos);
  } else {
    at.push_back(b.constant_int(-1));
  }
  return {typed(b, b.call("SequenceErase", erase), b.x(0)),
          typed(b, b.call("SequenceAt", at), b.x(1)), kNone};
}

std::vector<ValueId> erase_grad(GradBuilder& b) {
  ValueId pos =
      b.has(1) ? from_front(b, b.x(1), b.call("SequenceLength", {b.x(0)})) : b.constant_int(-1);
  ValueId gone = b.call("SequenceAt", {b.x(0), pos});
  if (const TypeInfo& t = b.type(b.x(0)); t.inner) set_type(b, gone, TypeInfo(*t.inner));
  std::vector<ValueId> in = {b.dy(), b.zeros_like(gone)};
  if (b.has(1)) in.push_back(pos);
  return {typed(b, b.call("SequenceInsert", in), b.x(0)), kNone};
}

}  // namespace

void register_sequences(OpTable& t) {
  t.add({.name = "SequenceConstruct", .run_values = run_construct, .grad = construct_grad});
  t.add({.name = "SequenceEmpty", .run_values = run_empty, .grad = empty_grad});
  t.add({.name = "SequenceAt", .run_values = run_at, .grad = at_grad});
  t.add({.name = "SequenceInsert", .run_values = run_insert, .grad = insert_grad});
  t.add({.name = "SequenceErase", .run_values = run_erase, .grad = erase_grad});
  t.add({.name = "SequenceLength",
         .run_values = run_length,
         .no_grad = "its result is a length, there is no gradient"});
}

}  // namespace onnxtrain::ops
