// Loop. Its gradient keeps the loop's state at the start of every iteration and runs a second loop
// over the iterations from last to first, which repeats an iteration and differentiates it.
#include <algorithm>

#include "core/budget.hpp"
#include "op/loop_condition.hpp"
#include "ops/control/body.hpp"

namespace onnxtrain::ops {

namespace {

void run(ValueCtx& c) {
  const Graph& body = body_of(c.node(), "body");
  size_t states = size_t(std::max(0, c.inputs() - 2));
  check_body(body, states + 2, states + 1);
  size_t scans = body.outputs.size() - 1 - states;
  int64_t trips = c.has(0) ? int_in(c, 0, 0) : -1;
  bool go = !c.has(1) || bool_of(*c.in(1), "the condition of Loop");
  bool reversed = c.node().random_stream == kRepeatsForward;
  std::vector<Value> state;
  for (size_t k = 0; k < states; ++k)
    state.push_back(c.has(int(k) + 2) ? *c.in(int(k) + 2) : Value());
  if (go && !c.has(0) && always_goes_on(body))
    model_error("OT1403", "Loop has no trip count and its body always returns true: it never ends",
                "give it a trip count, or let its body return a condition that becomes false");
  if (go && always_goes_on(body)) check_trips("Loop", trips);
  std::vector<Collected> collected(scans);
  for (int64_t i = 0; go && (trips < 0 ? !c.has(0) : i < trips); ++i) {
    std::vector<Value> in = {Tensor::scalar<int64_t>(i), Tensor::scalar<bool>(true)};
    for (Value& v : state) in.push_back(std::move(v));
    std::vector<Value> out =
        run_iteration(c, "Loop", i, std::move(in), uint64_t(reversed ? trips - i : i + 1));
    go = bool_of(out[0], "the condition that the body of Loop returns");
    for (size_t k = 0; k < states; ++k) state[k] = std::move(out[k + 1]);
    for (size_t k = 0; k < scans; ++k) {
      if (!c.wants(int(states + k))) continue;
      collected[k].add(tensor_of(out[states + 1 + k], "a scan output of Loop"));
    }
  }
  for (size_t k = 0; k < states; ++k) c.out(int(k), keep(state[k]));
  for (size_t k = 0; k < scans; ++k) {
    if (!c.wants(int(states + k))) continue;
    c.out(int(states + k),
          stacked(collected[k].parts(), body.value(body.outputs[states + 1 + k]).type, 0, false));
    collected[k].clear();
  }
}

// ---------------------------------------------------------------- gradient

// How the states at the start of the iterations are kept: stacked, one behind the other in a
// sequence, as parts of one sequence, or (what ONNX's sequences cannot hold) in a list of our own.
enum class Keeping { kStacked, kItems, kParts, kList };

struct History {
  Keeping how = Keeping::kStacked;
  ValueId all = kNone;
  ValueId first = kNone, count = kNone;  // parts: per iteration, where its items begin; how many
};

struct Kept {
  std::vector<History> history;  // per state
  std::vector<ValueId> last;     // per state: its value after the loop
  ValueId count = kNone;         // number of iterations that ran
};

bool same_shape(const TypeInfo& a, const TypeInfo& b) {
  return a.concrete() && b.concrete() && a.concrete_shape() == b.concrete_shape();
}

TypeInfo sequence_of(const TypeInfo& t) {
  TypeInfo s;
  s.kind = TypeInfo::Kind::kSequence;
  TypeInfo item = t;
  if (item.is_tensor()) item.shape = std::nullopt;
  s.inner = std::make_shared<const TypeInfo>(item);
  return s;
}

// The type of a state inside the body: with its shape if every iteration keeps it, else without.
std::vector<TypeInfo> state_types(GradBuilder& b, const Graph& body, size_t states) {
  std::vector<TypeInfo> types;
  for (size_t k = 0; k < states; ++k) {
    TypeInfo t = b.has(int(k) + 2) ? b.type(b.x(int(k) + 2)) : TypeInfo();
    if (t.kind == TypeInfo::Kind::kUnknown || (t.is_tensor() && t.elem == DType::kUndefined))
      t = body.value(body.inputs[k + 2]).type;
    types.push_back(t);
  }
  for (size_t round = 0; round <= states; ++round) {
    BodyBuilder probe(b, "probe");
    std::vector<ValueId> in = {probe.input("i", TypeInfo::tensor(DType::kInt64, {})),
                               probe.input("cond", TypeInfo::tensor(DType::kBool, {}))};
    for (const TypeInfo& t : types) in.push_back(probe.input("state", t));
    std::vector<ValueId> out = probe.inline_body(body, in);
    bool changed = false;
    for (size_t k = 0; k < states; ++k) {
      if (!types[k].concrete() || same_shape(types[k], probe.graph().value(out[k + 1]).type))
        continue;
      types[k].shape = std::nullopt;
      changed = true;
    }
    if (!changed) break;
  }
  return types;
}

// Changes the loop itself so that it also returns its states at the start of each iteration.
class StateKeeper {
 public:
  StateKeeper(GradBuilder& b, const std::vector<TypeInfo>& types)
      : b_(b), g_(b.graph()), types_(types), states_(types.size()) {
    for (ValueId v : b.node().outputs)
      if (v != kNone) any_ = v;
    body_ = std::make_shared<Graph>(body_of(loop(), "body").clone());
  }

  Kept keep_all() {
    loop().outputs.resize(body_->outputs.size() - 1, kNone);
    for (size_t k = 0; k < states_; ++k) {
      ValueId& last = loop().outputs[k];
      if (last == kNone) last = g_.add_value(g_.unique_name("loop_state"), types_[k]);
      kept_.last.push_back(last);
    }
    for (size_t k = 0; k < states_; ++k) {
      History h;
      h.how = keeping(types_[k]);
      if (h.how == Keeping::kStacked) {
        TypeInfo all = types_[k];
        all.shape->insert(all.shape->begin(), Dim{});
        h.all = scan_output(body_->inputs[k + 2], types_[k], all, "loop_states");
      } else {
        h.all = list(k, h);
      }
      kept_.history.push_back(h);
    }
    // the number of iterations that ran: from a scan output of their numbers
    TypeInfo number = TypeInfo::tensor(DType::kInt64, {});
    ValueId numbers =
        scan_output(body_->inputs[0], number, TypeInfo::tensor(DType::kInt64), "loop_iterations");
    loop().attrs["body"] = body_;
    g_.renumber();
    kept_.count = b_.call("Size", {numbers});
    g_.value(kept_.count).type = number;
    return kept_;
  }

 private:
  // The node in the graph, not the builder's copy; it moves when something is put in front of it.
  Node& loop() { return g_.nodes[size_t(g_.producer_of(any_))]; }
  GradBuilder inner() { return GradBuilder(*body_, b_.table(), Node{}, {}, b_.opset()); }

  ValueId scan_output(ValueId v, const TypeInfo& type, const TypeInfo& all, const char* name) {
    ValueId copy = inner().call("Identity", {v});
    body_->value(v).type = type;
    body_->value(copy).type = type;
    body_->outputs.push_back(copy);
    ValueId out = g_.add_value(g_.unique_name(name), all);
    loop().outputs.push_back(out);
    return out;
  }

  static bool is_plain(const TypeInfo& t) { return t.is_tensor() && t.elem != DType::kUndefined; }
  static Keeping keeping(const TypeInfo& t) {
    if (t.concrete()) return Keeping::kStacked;
    if (is_plain(t)) return Keeping::kItems;
    bool parts = t.kind == TypeInfo::Kind::kSequence && t.inner && is_plain(*t.inner);
    return parts ? Keeping::kParts : Keeping::kList;
  }

  // One more state of the loop: a sequence that grows by state k in each iteration.
  ValueId list(size_t k, History& h) {
    const TypeInfo& state = types_[k];
    TypeInfo seq = h.how == Keeping::kParts ? state : sequence_of(state);
    ValueId start = empty_list(seq), from = body_->inputs[k + 2];
    loop().inputs.push_back(start);
    ValueId held = body_->add_value(body_->unique_name("states"), seq);
    body_->inputs.push_back(held);
    const char* append = h.how == Keeping::kItems   ? "SequenceInsert"
                         : h.how == Keeping::kParts ? "ai.onnxtrain::SequenceJoin"
                                                    : "ai.onnxtrain::ListAppend";
    ValueId longer = inner().call(append, {held, from});
    body_->value(longer).type = seq;
    body_->outputs.insert(body_->outputs.begin() + long(1 + states_ + lists_), longer);
    ValueId out = g_.add_value(g_.unique_name("loop_states"), seq);
    loop().outputs.insert(loop().outputs.begin() + long(states_ + lists_), out);
    ++lists_;
    if (h.how == Keeping::kParts) {
      h.first = lengths(held);
      h.count = lengths(from);
    }
    return out;
  }

  // The length of a sequence in each iteration.
  ValueId lengths(ValueId s) {
    TypeInfo number = TypeInfo::tensor(DType::kInt64, {});
    TypeInfo all = number;
    all.shape->push_back(Dim{});
    return scan_output(inner().call("SequenceLength", {s}), number, all, "loop_lengths");
  }

  // An empty sequence before the loop.
  ValueId empty_list(const TypeInfo& seq) {
    Node empty;
    empty.op = "SequenceEmpty";
    empty.version = b_.opset();
    if (is_plain(*seq.inner)) empty.attrs["dtype"] = int64_t(seq.inner->elem);
    ValueId start = g_.add_value(g_.unique_name("no_states"), seq);
    empty.outputs = {start};
    empty.name = g_.value_name(start);
    g_.nodes.insert(g_.nodes.begin() + g_.producer_of(any_), std::move(empty));
    g_.renumber();
    return start;
  }

  GradBuilder& b_;
  Graph& g_;
  const std::vector<TypeInfo>& types_;
  size_t states_, lists_ = 0;
  ValueId any_ = kNone;
  GraphPtr body_;
  Kept kept_;
};

struct Plan {
  std::vector<TypeInfo> types;  // of the states
  std::vector<size_t> flowing;  // states that a gradient flows through
  std::vector<size_t> scans;    // scan outputs with a gradient
  Captures captures;
};

// The state at the start of iteration i.
ValueId state_at(BodyBuilder& body, const History& h, ValueId i) {
  GradBuilder in = body.builder();
  ValueId all = body.capture(h.all);
  auto number = [&](ValueId list) {
    ValueId n = in.call("Gather", {body.capture(list), i});
    body.graph().value(n).type = TypeInfo::tensor(DType::kInt64, {});
    return n;
  };
  switch (h.how) {
    case Keeping::kStacked:
      return in.call("Gather", {all, i});
    case Keeping::kItems:
      return in.call("SequenceAt", {all, i});
    case Keeping::kParts:
      return in.own("SequencePart", {all, number(h.first), number(h.count)});
    case Keeping::kList:
      break;
  }
  return in.own("ListAt", {all, i});
}

GraphPtr backward_body(GradBuilder& b, const Graph& forward, const Plan& p, const Kept& kept) {
  BodyBuilder body(b, forward.name + "_grad");
  ValueId j = body.input("j", TypeInfo::tensor(DType::kInt64, {}));
  ValueId cond = body.input("cond", TypeInfo::tensor(DType::kBool, {}));
  std::vector<ValueId> dstate, dcaptured;
  for (size_t k : p.flowing) dstate.push_back(body.input("d_state", p.types[k]));
  for (ValueId w : p.captures.wanted) dcaptured.push_back(body.input("d_captured", b.type(w)));
  GradBuilder in = body.builder();
  ValueId last = in.sub(body.capture(kept.count), in.constant_int(1));
  ValueId i = in.sub(last, j);
  body.graph().value(i).type = TypeInfo::tensor(DType::kInt64, {});
  std::vector<ValueId> args = {i, cond};
  for (size_t k = 0; k < p.types.size(); ++k) {
    args.push_back(state_at(body, kept.history[k], i));
    body.graph().value(args.back()).type = p.types[k];
  }
  std::vector<ValueId> outs = body.inline_body(forward, args);
  std::vector<ValueId> ys, dys, xs;
  for (size_t s = 0; s < p.flowing.size(); ++s) {
    ys.push_back(outs[p.flowing[s] + 1]);
    dys.push_back(dstate[s]);
    xs.push_back(args[p.flowing[s] + 2]);
  }
  size_t states = p.types.size();
  for (size_t k : p.scans) {
    ys.push_back(outs[states + 1 + k]);
    dys.push_back(in.call("Gather", {body.capture(b.dy(int(states + k))), i}));
    body.graph().value(dys.back()).type = body.graph().value(ys.back()).type;
  }
  for (ValueId w : p.captures.wanted) xs.push_back(body.capture(w));
  std::vector<ValueId> grads = body.gradients(ys, dys, xs);
  body.output(cond);
  for (size_t s = 0; s < p.flowing.size(); ++s) body.output(grads[s]);
  for (size_t w = 0; w < dcaptured.size(); ++w) {
    ValueId sum = in.add_gradients(dcaptured[w], grads[p.flowing.size() + w]);
    body.output(sum);
  }
  return body.finish();
}

std::vector<ValueId> grad(GradBuilder& b) {
  size_t states = size_t(std::max(0, b.inputs() - 2));
  const Graph forward = body_of(b.node(), "body").clone();
  check_body(forward, states + 2, states + 1);
  Plan p;
  p.types = state_types(b, forward, states);
  p.captures = captures_of(b);
  for (size_t k = 0; k < states; ++k)
    if (carries_gradient(p.types[k]) && b.has(int(k) + 2)) p.flowing.push_back(k);
  for (size_t k = states; k < b.node().outputs.size(); ++k)
    if (b.has_dy(int(k))) p.scans.push_back(k - states);
  Kept kept = StateKeeper(b, p.types).keep_all();
  std::vector<ValueId> inputs = {kept.count, kNone};
  for (size_t k : p.flowing) {
    inputs.push_back(b.has_dy(int(k)) ? b.dy(int(k)) : b.zeros_like(kept.last[k]));
  }
  for (ValueId w : p.captures.wanted) {
    inputs.push_back(b.zeros_like(w));
    b.graph().value(inputs.back()).type = b.type(w);
  }
  GraphPtr body = backward_body(b, forward, p, kept);
  size_t count = p.flowing.size() + p.captures.wanted.size();
  if (count == 0) return {};
  std::vector<ValueId> out = b.call_n("Loop", inputs, int(count), {{"body", body}});
  b.graph().nodes.back().random_stream = kRepeatsForward;
  std::vector<ValueId> result(size_t(b.inputs()), kNone);
  for (size_t s = 0; s < p.flowing.size(); ++s) {
    size_t k = p.flowing[s];
    result[k + 2] = out[s];
    b.graph().value(out[s]).type = b.type(b.x(int(k) + 2));
  }
  std::vector<ValueId> captured(out.begin() + long(p.flowing.size()), out.end());
  for (size_t w = 0; w < captured.size(); ++w)
    b.graph().value(captured[w]).type = b.type(p.captures.wanted[w]);
  for (ValueId v : p.captures.spread(captured)) result.push_back(v);
  return result;
}

// ---------------------------------------------------------------- lists of any values

void run_append(ValueCtx& c) {
  auto list = std::make_shared<Sequence>(sequence_in(c, 0));
  list->items.push_back(c.in(1) ? keep(*c.in(1)) : Value());
  c.out(0, list);
}

void run_at(ValueCtx& c) {
  const Sequence& list = sequence_in(c, 0);
  int64_t at = int_in(c, 1, 0);
  if (at < 0 || at >= int64_t(list.items.size()))
    model_error("OT1140", cat("position ", at, " is outside a list"));
  c.out(0, list.items[size_t(at)]);
}

}  // namespace

void register_loop(OpTable& t) {
  t.add({.name = "Loop", .run_values = run, .grad = grad});
  constexpr const char* kWhy =
      "second derivatives through a loop whose state is an optional value are not written";
  t.add({.name = "ListAppend",
         .domain = std::string(kOwnDomain),
         .run_values = run_append,
         .no_grad = kWhy});
  t.add(
      {.name = "ListAt", .domain = std::string(kOwnDomain), .run_values = run_at, .no_grad = kWhy});
}

}  // namespace onnxtrain::ops
