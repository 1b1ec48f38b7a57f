// SequenceMap: a body applied to each item of a sequence. Its gradient is a Loop over the items.
#include "ops/control/body.hpp"

namespace onnxtrain::ops {

namespace {

const Sequence* as_sequence(const Value* v) {
  const auto* s = v ? std::get_if<std::shared_ptr<Sequence>>(v) : nullptr;
  return s && *s ? s->get() : nullptr;
}

void run(ValueCtx& c) {
  const Sequence& first = sequence_in(c, 0);
  const Graph& body = body_of(c.node(), "body");
  check_body(body, size_t(c.inputs()), size_t(c.outputs()));
  size_t n = first.items.size();
  for (int i = 1; i < c.inputs(); ++i)
    if (const Sequence* s = as_sequence(c.in(i)); s && s->items.size() != n)
      model_error("OT1154",
                  cat("SequenceMap over sequences of lengths ", n, " and ", s->items.size()));
  std::vector<std::shared_ptr<Sequence>> out;
  for (int k = 0; k < c.outputs(); ++k) {
    out.push_back(std::make_shared<Sequence>());
    out.back()->elem = body.value(body.outputs[size_t(k)]).type.elem;
  }
  for (size_t at = 0; at < n; ++at) {
    std::vector<Value> in;
    for (int i = 0; i < c.inputs(); ++i) {
      const Sequence* s = as_sequence(c.in(i));
      in.push_back(s ? s->items[at] : (c.in(i) ? *c.in(i) : Value()));
    }
    std::vector<Value> r = run_iteration(c, "SequenceMap", int64_t(at), std::move(in), at + 1);
    for (size_t k = 0; k < out.size(); ++k) {
      if (const Tensor* t = std::get_if<Tensor>(&r[k])) out[k]->elem = t->dtype();
      out[k]->items.push_back(keep(r[k]));
    }
  }
  for (size_t k = 0; k < out.size(); ++k) c.out(int(k), out[k]);
}

bool is_sequence(const TypeInfo& t) { return t.kind == TypeInfo::Kind::kSequence; }

TypeInfo item_type(const TypeInfo& t) { return is_sequence(t) && t.inner ? *t.inner : TypeInfo(); }

DType elem_of(const TypeInfo& t) {
  return is_sequence(t) && t.inner && t.inner->elem != DType::kUndefined ? t.inner->elem
                                                                         : DType::kFloat;
}

// One Loop in the order of the items: gradients of items are appended to sequences, gradients of
// plain tensors and of captured values are summed.
std::vector<ValueId> grad(GradBuilder& b) {
  const Graph forward = body_of(b.node(), "body").clone();
  check_body(forward, size_t(b.inputs()), b.node().outputs.size());
  Captures captures = captures_of(b);
  BodyBuilder body(b, forward.name + "_grad");
  ValueId i = body.input("i", TypeInfo::tensor(DType::kInt64, {}));
  ValueId cond = body.input("cond", TypeInfo::tensor(DType::kBool, {}));
  std::vector<ValueId> start = {b.call("SequenceLength", {b.x(0)}), kNone};
  std::vector<int> wanted;
  std::vector<ValueId> held;
  auto carry = [&](ValueId like, bool append) {
    ValueId v;
    if (append) {
      v = b.call("SequenceEmpty", {}, {{"dtype", int64_t(elem_of(b.type(like)))}});
    } else {
      v = b.zeros_like(like);
    }
    b.graph().value(v).type = b.type(like);
    start.push_back(v);
    held.push_back(body.input("d", b.type(like)));
  };
  for (int k = 0; k < b.inputs(); ++k)
    if (b.has(k) && b.wants(k)) {
      wanted.push_back(k);
      carry(b.x(k), k == 0 || is_sequence(b.type(b.x(k))));
    }
  for (ValueId w : captures.wanted) carry(w, false);
  GradBuilder in = body.builder();
  auto item = [&](ValueId sequence) {
    ValueId v = in.call("SequenceAt", {body.capture(sequence), i});
    body.graph().value(v).type = item_type(b.type(sequence));
    return v;
  };
  std::vector<ValueId> args, ys, dys, xs;
  for (int k = 0; k < b.inputs(); ++k)
    args.push_back(k == 0 || is_sequence(b.type(b.x(k))) ? item(b.x(k)) : body.capture(b.x(k)));
  std::vector<ValueId> outs = body.inline_body(forward, args);
  for (size_t k = 0; k < b.node().outputs.size(); ++k)
    if (b.has_dy(int(k))) {
      ys.push_back(outs[k]);
      dys.push_back(item(b.dy(int(k))));
    }
  for (int k : wanted) xs.push_back(args[size_t(k)]);
  for (ValueId w : captures.wanted) xs.push_back(body.capture(w));
  std::vector<ValueId> grads = body.gradients(ys, dys, xs);
  body.output(cond);
  for (size_t k = 0; k < held.size(); ++k) {
    bool append = k < wanted.size() && (wanted[k] == 0 || is_sequence(b.type(b.x(wanted[k]))));
    ValueId v = append ? in.call("SequenceInsert", {held[k], grads[k]})
                       : in.add_gradients(held[k], grads[k]);
    body.graph().value(v).type = body.graph().value(held[k]).type;
    body.output(v);
  }
  std::vector<ValueId> result(size_t(b.inputs()), kNone);
  if (held.empty()) return result;
  std::vector<ValueId> out = b.call_n("Loop", start, int(held.size()), {{"body", body.finish()}});
  std::vector<ValueId> captured;
  for (size_t k = 0; k < out.size(); ++k) {
    bool of_input = k < wanted.size();
    ValueId like = of_input ? b.x(wanted[k]) : captures.wanted[k - wanted.size()];
    b.graph().value(out[k]).type = b.type(like);
    if (of_input) {
      result[size_t(wanted[k])] = out[k];
    } else {
      captured.push_back(out[k]);
    }
  }
  for (ValueId v : captures.spread(captured)) result.push_back(v);
  return result;
}

}  // namespace

void register_sequence_map(OpTable& t) {
  t.add({.name = "SequenceMap", .since = 17, .run_values = run, .grad = grad});
}

}  // namespace onnxtrain::ops
