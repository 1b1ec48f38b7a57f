// Sequences end to end, for gradients of loops whose state is a sequence: SequenceJoin(a, b), the
// items of a and then those of b; SequencePart(s, first, count), some items of s.
#include "op/needs_shape.hpp"
#include "ops/control/body.hpp"

namespace onnxtrain::ops {

namespace {

using Grads = std::vector<ValueId>;

void run_join(ValueCtx& c) {
  auto out = std::make_shared<Sequence>(sequence_in(c, 0));
  const Sequence& more = sequence_in(c, 1);
  if (out->items.empty()) out->elem = more.elem;
  out->items.insert(out->items.end(), more.items.begin(), more.items.end());
  c.out(0, out);
}

void run_part(ValueCtx& c) {
  const Sequence& s = sequence_in(c, 0);
  int64_t first = int_in(c, 1, 0), count = int_in(c, 2, 0), size = int64_t(s.items.size());
  if (first < 0 || count < 0 || first > size || count > size - first)
    model_error("OT1140", cat("items ", first, " to ", first + count,
                              " are outside a sequence of length ", size));
  auto out = std::make_shared<Sequence>();
  out->elem = s.elem;
  out->items.assign(s.items.begin() + long(first), s.items.begin() + long(first + count));
  c.out(0, out);
}

ValueId typed(GradBuilder& b, ValueId v, ValueId like) {
  b.graph().value(v).type = b.type(like);
  return v;
}
ValueId length(GradBuilder& b, ValueId s) {
  ValueId n = b.call("SequenceLength", {s});
  b.graph().value(n).type = TypeInfo::tensor(DType::kInt64, {});
  return n;
}
ValueId join(GradBuilder& b, ValueId x, ValueId y) {
  return typed(b, b.own("SequenceJoin", {x, y}), x);
}
ValueId part(GradBuilder& b, ValueId s, ValueId first, ValueId count) {
  return typed(b, b.own("SequencePart", {s, first, count}), s);
}

Grads join_grad(GradBuilder& b) {
  ValueId dy = b.dy(), first = length(b, b.x(0));
  return {typed(b, part(b, dy, b.constant_int(0), first), b.x(0)),
          typed(b, part(b, dy, first, length(b, b.x(1))), b.x(1))};
}

Grads part_grad(GradBuilder& b) {
  ValueId s = b.x(0), end = b.add(b.x(1), b.x(2));
  ValueId before = b.zeros_like(part(b, s, b.constant_int(0), b.x(1)));
  ValueId after = b.zeros_like(part(b, s, end, b.sub(length(b, s), end)));
  return {join(b, join(b, typed(b, before, s), b.dy()), typed(b, after, s)), kNone, kNone};
}

// `start` with items first, first + 1, ... of `from` behind it, by a Loop.
ValueId appended(GradBuilder& b, ValueId start, ValueId from, ValueId first, ValueId count) {
  BodyBuilder body(b, "append");
  ValueId i = body.input("i", TypeInfo::tensor(DType::kInt64, {}));
  ValueId cond = body.input("cond", TypeInfo::tensor(DType::kBool, {}));
  ValueId held = body.input("held", b.type(from));
  GradBuilder in = body.builder();
  ValueId at = first == kNone ? i : in.add(body.capture(first), i);
  ValueId item = in.call("SequenceAt", {body.capture(from), at});
  if (const TypeInfo& t = b.type(from); t.inner) body.graph().value(item).type = *t.inner;
  body.output(cond);
  body.output(typed(in, in.call("SequenceInsert", {held, item}), held));
  return typed(b, b.call("Loop", {count, kNone, start}, {{"body", body.finish()}}), from);
}

Grads join_lower(GradBuilder& b) { return {appended(b, b.x(0), b.x(1), kNone, length(b, b.x(1)))}; }

Grads part_lower(GradBuilder& b) {
  const TypeInfo& t = b.type(b.x(0));
  if (!t.inner || !t.inner->is_tensor() || t.inner->elem == DType::kUndefined)
    needs_shape("OT1205", cat(b.node().label(), " needs the element type of its sequence"));
  ValueId empty = b.call("SequenceEmpty", {}, {{"dtype", int64_t(t.inner->elem)}});
  return {appended(b, typed(b, empty, b.x(0)), b.x(0), b.x(1), b.x(2))};
}

}  // namespace

void register_sequence_lists(OpTable& t) {
  t.add({.name = "SequenceJoin",
         .domain = std::string(kOwnDomain),
         .run_values = run_join,
         .grad = join_grad,
         .lower = join_lower});
  t.add({.name = "SequencePart",
         .domain = std::string(kOwnDomain),
         .run_values = run_part,
         .grad = part_grad,
         .lower = part_lower});
}

}  // namespace onnxtrain::ops
