// Scan (9 and later). Its gradient is a Scan over the same iterations from last to first, which
// reads the state at the start of each iteration from scan outputs added to the forward Scan.
#include <algorithm>
#include <cstring>

#include "core/budget.hpp"
#include "ops/control/body.hpp"

namespace onnxtrain::ops {

namespace {

struct Form {
  size_t states, scan_inputs, scan_outputs;
  std::vector<int64_t> in_axes, out_axes, in_backwards, out_backwards;
};

std::vector<int64_t> list_of(const Node& n, const char* key, size_t count) {
  std::vector<int64_t> v = n.ints(key);
  if (v.empty()) v.assign(count, 0);
  if (v.size() != count)
    model_error("OT1152",
                cat("attribute '", key, "' has ", v.size(), " entries, expected ", count));
  return v;
}

std::vector<int64_t> directions_of(const Node& n, const char* key, size_t count) {
  std::vector<int64_t> v = list_of(n, key, count);
  for (int64_t d : v)
    if (d != 0 && d != 1)
      model_error("OT1152", cat("attribute '", key, "' has ", d, ", expected 0 or 1"));
  return v;
}

Form form_of(const Node& n, size_t inputs) {
  int64_t m = n.i("num_scan_inputs", 0);
  if (m < 1 || m > int64_t(inputs))
    model_error("OT1152", cat("num_scan_inputs is ", m, ", the node has ", inputs, " inputs"));
  const Graph& body = body_of(n, "body");
  Form f;
  f.scan_inputs = size_t(m);
  f.states = inputs - f.scan_inputs;
  check_body(body, inputs, f.states);
  f.scan_outputs = body.outputs.size() - f.states;
  f.in_axes = list_of(n, "scan_input_axes", f.scan_inputs);
  f.out_axes = list_of(n, "scan_output_axes", f.scan_outputs);
  f.in_backwards = directions_of(n, "scan_input_directions", f.scan_inputs);
  f.out_backwards = directions_of(n, "scan_output_directions", f.scan_outputs);
  return f;
}

// x at `at` along the axis, without the axis
Tensor element(const Tensor& x, int64_t axis, int64_t at) {
  Tensor part = slice(x, axis, at, 1);
  Shape s = part.shape();
  s.erase(s.begin() + axis);
  return part.reshaped(s);
}

struct Sweep {
  std::vector<Value> states;
  std::vector<Collected> collected;
};

// Runs the body over `count` elements of the scan inputs.
void sweep(ValueCtx& c, const Form& f, const std::vector<Tensor>& xs,
           const std::vector<int64_t>& axes, int64_t count, Sweep& s) {
  check_trips("Scan", count);
  bool reversed = c.node().random_stream == kRepeatsForward;
  s.collected = std::vector<Collected>(f.scan_outputs);
  for (int64_t i = 0; i < count; ++i) {
    std::vector<Value> in;
    for (Value& v : s.states) in.push_back(std::move(v));
    for (size_t k = 0; k < xs.size(); ++k)
      in.push_back(element(xs[k], axes[k], f.in_backwards[k] ? count - 1 - i : i));
    std::vector<Value> out =
        run_iteration(c, "Scan", i, std::move(in), uint64_t(reversed ? count - i : i + 1));
    for (size_t k = 0; k < f.states; ++k) s.states[k] = std::move(out[k]);
    for (size_t k = 0; k < f.scan_outputs; ++k)
      if (c.wants(int(f.states + k)))
        s.collected[k].add(tensor_of(out[f.states + k], "a scan output"));
  }
}

void run(ValueCtx& c) {
  Form f = form_of(c.node(), size_t(c.inputs()));
  const Graph& body = body_of(c.node(), "body");
  std::vector<Tensor> xs;
  std::vector<int64_t> axes;
  int64_t count = -1;
  for (size_t k = 0; k < f.scan_inputs; ++k) {
    xs.push_back(c.tensor(int(f.states + k)));
    axes.push_back(normalize_axis(f.in_axes[k], xs[k].rank(), "axis of a scan input"));
    int64_t n = xs[k].shape()[size_t(axes[k])];
    if (count >= 0 && n != count)
      model_error("OT1153", cat("scan inputs have lengths ", count, " and ", n));
    count = n;
  }
  Sweep s;
  for (size_t k = 0; k < f.states; ++k) s.states.push_back(c.has(int(k)) ? *c.in(int(k)) : Value());
  sweep(c, f, xs, axes, count, s);
  for (size_t k = 0; k < f.states; ++k) c.out(int(k), keep(s.states[k]));
  for (size_t k = 0; k < f.scan_outputs; ++k)
    if (c.wants(int(f.states + k)))
      c.out(int(f.states + k),
            stacked(s.collected[k].parts(), body.value(body.outputs[f.states + k]).type,
                    f.out_axes[k], f.out_backwards[k] != 0));
}

// Scan-8: everything has a leading batch dimension, scan inputs have time second, and
// sequence_lens (input 0) may end a row early; what lies behind is zero.
struct Batch {
  Form f;
  int64_t rows = 0, longest = 0;
  std::vector<int64_t> lengths;
};

Batch batch_of(const ValueCtx& c) {
  size_t inputs = size_t(std::max(0, c.inputs() - 1));
  Node plain = c.node();
  if (const Attr* d = c.node().find("directions")) plain.attrs["scan_input_directions"] = *d;
  Batch b;
  b.f = form_of(plain, inputs);
  for (size_t i = 1; i <= inputs; ++i) {
    const Shape& s = c.tensor(int(i)).shape();
    bool scanned = i > b.f.states;
    if (s.size() < (scanned ? 2u : 1u) || (i > 1 && s[0] != b.rows) ||
        (i > b.f.states + 1 && s[1] != b.longest))
      model_error("OT1153", cat("input ", i, " of Scan has shape ", to_string(s),
                                ", which does not fit the others"));
    b.rows = s[0];
    if (scanned) b.longest = s[1];
  }
  b.lengths.assign(size_t(b.rows), b.longest);
  if (c.has(0)) b.lengths = c.tensor(0).to_ints();
  if (int64_t(b.lengths.size()) != b.rows)
    model_error("OT1153", "sequence_lens of Scan has not one entry per row");
  for (int64_t len : b.lengths)
    if (len < 0 || len > b.longest)
      model_error("OT1153", cat("sequence_lens of Scan has ", len, ", the length is ", b.longest));
  return b;
}

// Zeros behind what was computed.
Tensor padded(const Tensor& part, int64_t length) {
  Shape rest = part.shape();
  rest[0] = length - rest[0];
  Tensor zeros(part.dtype(), rest);
  if (part.dtype() != DType::kString && zeros.bytes()) std::memset(zeros.data(), 0, zeros.bytes());
  return concat({part, zeros}, 0, "a scan output");
}

void run8(ValueCtx& c) {
  Batch b = batch_of(c);
  const Form& f = b.f;
  const Graph& body = body_of(c.node(), "body");
  auto declared = [&](size_t k) { return body.value(body.outputs[f.states + k]).type; };
  std::vector<std::vector<Tensor>> states(f.states), outs(f.scan_outputs);
  std::vector<int64_t> axes(f.scan_inputs, 0);
  for (int64_t row = 0; row < b.rows; ++row) {
    int64_t len = b.lengths[size_t(row)];
    Sweep s;
    std::vector<Tensor> xs;
    for (size_t k = 0; k < f.states; ++k) s.states.push_back(element(c.tensor(int(1 + k)), 0, row));
    for (size_t k = 0; k < f.scan_inputs; ++k)
      xs.push_back(slice(element(c.tensor(int(1 + f.states + k)), 0, row), 0, 0, len));
    sweep(c, f, xs, axes, len, s);
    for (size_t k = 0; k < f.states; ++k)
      states[k].push_back(tensor_of(s.states[k], "a state of Scan"));
    for (size_t k = 0; k < f.scan_outputs; ++k)
      if (c.wants(int(f.states + k)))
        outs[k].push_back(
            padded(stacked(s.collected[k].parts(), declared(k), 0, false), b.longest));
  }
  for (size_t k = 0; k < f.states; ++k)
    c.out(int(k),
          b.rows ? Value(stack(states[k], 0, false, "a state of Scan")) : keep(*c.in(int(1 + k))));
  for (size_t k = 0; k < f.scan_outputs; ++k)
    if (c.wants(int(f.states + k)))
      c.out(int(f.states + k), stacked(outs[k], declared(k), 0, false));
}

// ---------------------------------------------------------------- gradient

// Without the scanned axis.
TypeInfo element_type(const TypeInfo& t, int64_t axis) {
  TypeInfo e = t;
  if (!t.is_tensor() || !t.shape) return e;
  axis = normalize_axis(axis, int64_t(t.shape->size()), "axis of a scan input");
  e.shape->erase(e.shape->begin() + axis);
  return e;
}

// Adds the states at the start of each iteration as scan outputs of the forward Scan.
std::vector<ValueId> keep_states(GradBuilder& b, const Form& f) {
  Graph& g = b.graph();
  ValueId any = kNone;
  for (ValueId v : b.node().outputs)
    if (v != kNone) any = v;
  Node& scan = g.nodes[size_t(g.producer_of(any))];
  auto body = std::make_shared<Graph>(body_of(scan, "body").clone());
  scan.outputs.resize(body->outputs.size(), kNone);
  GradBuilder inner(*body, b.table(), Node{}, {}, b.opset());
  std::vector<ValueId> history;
  std::vector<int64_t> axes = f.out_axes, backwards = f.out_backwards;
  for (size_t k = 0; k < f.states; ++k) {
    TypeInfo type = b.type(b.x(int(k)));
    ValueId copy = inner.call("Identity", {body->inputs[k]});
    body->value(copy).type = type;
    body->outputs.push_back(copy);
    if (type.shape) type.shape->insert(type.shape->begin(), Dim{});
    history.push_back(g.add_value(g.unique_name("scan_states"), type));
    scan.outputs.push_back(history.back());
    axes.push_back(0);
    backwards.push_back(0);
  }
  scan.attrs["body"] = GraphPtr(body);
  scan.attrs["scan_output_axes"] = axes;
  scan.attrs["scan_output_directions"] = backwards;
  g.renumber();
  return history;
}

// The backward Scan. States: gradients of the states, sums for captured values. Scanned: the kept
// states, the scan inputs, the gradients of the scan outputs, all from the other end.
class BackwardScan {
 public:
  explicit BackwardScan(GradBuilder& b)
      : b_(b),
        f_(form_of(b.node(), size_t(b.inputs()))),
        forward_(body_of(b.node(), "body").clone()),
        captures_(captures_of(b)),
        body_(b, forward_.name + "_grad") {}

  std::vector<ValueId> build() {
    for (size_t k = 0; k < f_.states; ++k)
      if (carries_gradient(b_.type(b_.x(int(k))))) flowing_.push_back(k);
    for (size_t k = 0; k < f_.scan_inputs; ++k)
      if (b_.wants(int(f_.states + k))) scanned_.push_back(k);
    for (size_t k = f_.states; k < b_.node().outputs.size(); ++k)
      if (b_.has_dy(int(k))) cotangents_.push_back(k - f_.states);
    std::vector<ValueId> history = keep_states(b_, f_);
    add_states();
    add_scan_inputs(history);
    add_gradients();
    return connect();
  }

 private:
  void add_states() {
    for (size_t k : flowing_) {
      dstate_.push_back(body_.input("d_state", b_.type(b_.x(int(k)))));
      inputs_.push_back(b_.has_dy(int(k)) ? b_.dy(int(k)) : b_.zeros_like(b_.x(int(k))));
    }
    for (ValueId w : captures_.wanted) {
      dcaptured_.push_back(body_.input("d_captured", b_.type(w)));
      inputs_.push_back(b_.zeros_like(w));
    }
  }

  ValueId scan_over(ValueId v, int64_t axis, int64_t backwards, TypeInfo element) {
    inputs_.push_back(v);
    in_axes_.push_back(axis);
    in_backwards_.push_back(backwards);
    return body_.input("element", std::move(element));
  }

  void add_scan_inputs(const std::vector<ValueId>& history) {
    for (size_t k = 0; k < f_.states; ++k)
      args_.push_back(scan_over(history[k], 0, 1, b_.type(b_.x(int(k)))));
    for (size_t k = 0; k < f_.scan_inputs; ++k) {
      ValueId x = b_.x(int(f_.states + k));
      args_.push_back(scan_over(x, f_.in_axes[k], 1 - f_.in_backwards[k],
                                element_type(b_.type(x), f_.in_axes[k])));
    }
    for (size_t k : cotangents_) {
      ValueId dy = b_.dy(int(f_.states + k));
      TypeInfo element = element_type(b_.type(dy), f_.out_axes[k]);
      dys_.push_back(scan_over(dy, f_.out_axes[k], 1 - f_.out_backwards[k], element));
    }
  }

  // One iteration again, and its gradients as outputs of the body.
  void add_gradients() {
    std::vector<ValueId> outs = body_.inline_body(forward_, args_), ys, dys, xs;
    for (size_t s = 0; s < flowing_.size(); ++s) {
      ys.push_back(outs[flowing_[s]]);
      dys.push_back(dstate_[s]);
      xs.push_back(args_[flowing_[s]]);
    }
    for (size_t s = 0; s < cotangents_.size(); ++s) {
      ys.push_back(outs[f_.states + cotangents_[s]]);
      dys.push_back(dys_[s]);
      TypeInfo& t = body_.graph().value(dys_[s]).type;
      if (!t.concrete()) t = body_.graph().value(ys.back()).type;
    }
    for (ValueId w : captures_.wanted) xs.push_back(body_.capture(w));
    for (size_t k : scanned_) xs.push_back(args_[f_.states + k]);
    std::vector<ValueId> grads = body_.gradients(ys, dys, xs);
    GradBuilder in = body_.builder();
    size_t at = 0;
    for (size_t s = 0; s < flowing_.size(); ++s) body_.output(grads[at++]);
    for (ValueId sum : dcaptured_) body_.output(in.add_gradients(sum, grads[at++]));
    for (size_t k : scanned_) {
      body_.output(grads[at++]);
      out_axes_.push_back(f_.in_axes[k]);
      out_backwards_.push_back(1 - f_.in_backwards[k]);
    }
  }

  std::vector<ValueId> connect() {
    std::vector<ValueId> result(size_t(b_.inputs()), kNone);
    size_t count = body_.graph().outputs.size();
    if (count == 0) return result;
    std::vector<ValueId> out = b_.call_n("Scan", inputs_, int(count),
                                         {{"body", body_.finish()},
                                          {"num_scan_inputs", int64_t(in_axes_.size())},
                                          {"scan_input_axes", in_axes_},
                                          {"scan_input_directions", in_backwards_},
                                          {"scan_output_axes", out_axes_},
                                          {"scan_output_directions", out_backwards_}});
    b_.graph().nodes.back().random_stream = kRepeatsForward;
    size_t at = 0;
    auto take = [&](ValueId like) {
      b_.graph().value(out[at]).type = b_.type(like);
      return out[at++];
    };
    for (size_t k : flowing_) result[k] = take(b_.x(int(k)));
    std::vector<ValueId> captured;
    for (ValueId w : captures_.wanted) captured.push_back(take(w));
    for (size_t k : scanned_) result[f_.states + k] = take(b_.x(int(f_.states + k)));
    for (ValueId v : captures_.spread(captured)) result.push_back(v);
    return result;
  }

  GradBuilder& b_;
  Form f_;
  const Graph forward_;
  Captures captures_;
  BodyBuilder body_;
  std::vector<size_t> flowing_, scanned_,
      cotangents_;  // states, scan inputs, scan outputs with a gradient
  std::vector<ValueId> inputs_, dstate_, dcaptured_, args_, dys_;
  std::vector<int64_t> in_axes_, in_backwards_, out_axes_, out_backwards_;
};

std::vector<ValueId> grad(GradBuilder& b) { return BackwardScan(b).build(); }

}  // namespace

void register_scan(OpTable& t) {
  t.add({.name = "Scan", .since = 8, .run_values = run8, .lower = lower_scan8});
  t.add({.name = "Scan", .since = 9, .run_values = run, .grad = grad});
}

}  // namespace onnxtrain::ops
