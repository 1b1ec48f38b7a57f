// Scan (9 and later). Its gradient is a Scan over the same iterations from last to first, which
// reads the state at the start of each iteration from scan outputs added to the forward Scan.
#include <algorithm>

#include "ops/control_detail.hpp"

namespace onnxtrain::ops {

namespace {

struct Form {
  size_t states, scan_inputs, scan_outputs;
  std::vector<int64_t> in_axes, out_axes, in_backwards, out_backwards;
};

std::vector<int64_t> list_of(const Node& n, const char* key, size_t count) {
  std::vector<int64_t> v = n.ints(key);
  if (v.empty()) v.assign(count, 0);
  if (v.size() != count) model_error("OT1152", cat("attribute '", key, "' has ", v.size(), " entries, expected ", count));
  return v;
}

std::vector<int64_t> directions_of(const Node& n, const char* key, size_t count) {
  std::vector<int64_t> v = list_of(n, key, count);
  for (int64_t d : v)
    if (d != 0 && d != 1) model_error("OT1152", cat("attribute '", key, "' has ", d, ", expected 0 or 1"));
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
  std::vector<std::vector<Tensor>> collected;
};

// Runs the body over `count` elements of the scan inputs.
void sweep(ValueCtx& c, const Form& f, const std::vector<Tensor>& xs, const std::vector<int64_t>& axes, int64_t count,
           Sweep& s) {
  if (count > kMaxTrips) model_error("OT1402", cat("Scan runs for more than ", kMaxTrips, " iterations"));
  bool reversed = c.node().random_stream == kReversedIterations;
  s.collected.assign(f.scan_outputs, {});
  for (int64_t i = 0; i < count; ++i) {
    std::vector<Value> in;
    for (Value& v : s.states) in.push_back(std::move(v));
    for (size_t k = 0; k < xs.size(); ++k)
      in.push_back(element(xs[k], axes[k], f.in_backwards[k] ? count - 1 - i : i));
    std::vector<Value> out = c.run_graph("body", std::move(in), uint64_t(reversed ? count - i : i + 1));
    for (size_t k = 0; k < f.states; ++k) s.states[k] = std::move(out[k]);
    for (size_t k = 0; k < f.scan_outputs; ++k)
      if (c.wants(int(f.states + k))) s.collected[k].push_back(tensor_of(out[f.states + k], "a scan output"));
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
    if (count >= 0 && n != count) model_error("OT1153", cat("scan inputs have lengths ", count, " and ", n));
    count = n;
  }
  Sweep s;
  for (size_t k = 0; k < f.states; ++k) s.states.push_back(c.has(int(k)) ? *c.in(int(k)) : Value());
  sweep(c, f, xs, axes, count, s);
  for (size_t k = 0; k < f.states; ++k) c.out(int(k), keep(s.states[k]));
  for (size_t k = 0; k < f.scan_outputs; ++k)
    if (c.wants(int(f.states + k)))
      c.out(int(f.states + k), stacked(s.collected[k], body.value(body.outputs[f.states + k]).type, f.out_axes[k],
                                       f.out_backwards[k] != 0));
}

// Scan-8: everything has a leading batch dimension, scan inputs have time second, and
// sequence_lens (input 0) may end a row early; what lies behind is zero.
void run8(ValueCtx& c) {
  const Node& n = c.node();
  size_t inputs = size_t(std::max(0, c.inputs() - 1));
  Node plain = n;
  if (const Attr* d = n.find("directions")) plain.attrs["scan_input_directions"] = *d;
  Form f = form_of(plain, inputs);
  const Graph& body = body_of(n, "body");
  const Tensor& first = c.tensor(1);
  if (first.rank() < 1) model_error("OT1153", "an input of Scan has no batch dimension");
  int64_t batch = first.shape()[0], longest = 0;
  for (int i = 1; i <= int(inputs); ++i) {
    const Shape& s = c.tensor(i).shape();
    bool scanned = size_t(i) > f.states;
    if (s.size() < (scanned ? 2u : 1u) || s[0] != batch)
      model_error("OT1153", cat("input ", i, " of Scan has shape ", to_string(s), ", the batch is ", batch));
    if (scanned) longest = s[1];
  }
  for (size_t k = 0; k < f.scan_inputs; ++k)
    if (c.tensor(int(1 + f.states + k)).shape()[1] != longest) model_error("OT1153", "scan inputs differ in length");
  std::vector<int64_t> lens(size_t(batch), longest);
  if (c.has(0)) lens = c.tensor(0).to_ints();
  if (int64_t(lens.size()) != batch) model_error("OT1153", "sequence_lens of Scan has not one entry per row");
  std::vector<std::vector<Tensor>> states(f.states), outs(f.scan_outputs);
  std::vector<int64_t> axes(f.scan_inputs, 0);
  for (int64_t row = 0; row < batch; ++row) {
    int64_t len = lens[size_t(row)];
    if (len < 0 || len > longest) model_error("OT1153", cat("sequence_lens of Scan has ", len, ", the length is ", longest));
    Sweep s;
    std::vector<Tensor> xs;
    for (size_t k = 0; k < f.states; ++k) s.states.push_back(element(c.tensor(int(1 + k)), 0, row));
    for (size_t k = 0; k < f.scan_inputs; ++k) xs.push_back(slice(element(c.tensor(int(1 + f.states + k)), 0, row), 0, 0, len));
    sweep(c, f, xs, axes, len, s);
    for (size_t k = 0; k < f.states; ++k) states[k].push_back(tensor_of(s.states[k], "a state of Scan"));
    for (size_t k = 0; k < f.scan_outputs; ++k) {
      if (!c.wants(int(f.states + k))) continue;
      Tensor part = stacked(s.collected[k], body.value(body.outputs[f.states + k]).type, 0, false);
      Shape rest = part.shape();
      rest[0] = longest - len;
      Tensor zeros(part.dtype(), rest);
      if (part.dtype() != DType::kString && zeros.bytes()) std::fill_n(static_cast<char*>(zeros.data()), zeros.bytes(), 0);
      outs[k].push_back(concat({part, zeros}, 0, "a scan output"));
    }
  }
  for (size_t k = 0; k < f.states; ++k)
    c.out(int(k), batch ? Value(stack(states[k], 0, false, "a state of Scan")) : keep(*c.in(int(1 + k))));
  for (size_t k = 0; k < f.scan_outputs; ++k)
    if (c.wants(int(f.states + k)))
      c.out(int(f.states + k), stacked(outs[k], body.value(body.outputs[f.states + k]).type, 0, false));
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

std::vector<ValueId> grad(GradBuilder& b) {
  Form f = form_of(b.node(), size_t(b.inputs()));
  const Graph forward = body_of(b.node(), "body").clone();
  Captures captures = captures_of(b);
  std::vector<size_t> flowing, scanned, cotangents;
  for (size_t k = 0; k < f.states; ++k)
    if (differentiable(b.type(b.x(int(k))))) flowing.push_back(k);
  for (size_t k = 0; k < f.scan_inputs; ++k)
    if (b.wants(int(f.states + k))) scanned.push_back(k);
  for (size_t k = f.states; k < b.node().outputs.size(); ++k)
    if (b.has_dy(int(k))) cotangents.push_back(k - f.states);
  std::vector<ValueId> history = keep_states(b, f);

  // states: gradients of states, sums for captures; scanned: kept states, inputs, gradients of outputs
  BodyBuilder body(b, forward.name + "_grad");
  std::vector<ValueId> inputs, dstate, dcaptured, args, dys;
  std::vector<int64_t> in_axes, in_backwards, out_axes, out_backwards;
  for (size_t k : flowing) {
    dstate.push_back(body.input("d_state", b.type(b.x(int(k)))));
    inputs.push_back(b.has_dy(int(k)) ? b.dy(int(k)) : b.zeros_like(b.x(int(k))));
  }
  for (ValueId w : captures.wanted) {
    dcaptured.push_back(body.input("d_captured", b.type(w)));
    inputs.push_back(b.zeros_like(w));
    b.graph().value(inputs.back()).type = b.type(w);
  }
  auto scan_over = [&](ValueId v, int64_t axis, int64_t backwards, TypeInfo element) {
    inputs.push_back(v);
    in_axes.push_back(axis);
    in_backwards.push_back(backwards);
    return body.input("element", std::move(element));
  };
  for (size_t k = 0; k < f.states; ++k) args.push_back(scan_over(history[k], 0, 1, b.type(b.x(int(k)))));
  for (size_t k = 0; k < f.scan_inputs; ++k) {
    ValueId x = b.x(int(f.states + k));
    args.push_back(scan_over(x, f.in_axes[k], 1 - f.in_backwards[k], element_type(b.type(x), f.in_axes[k])));
  }
  for (size_t k : cotangents) {
    ValueId dy = b.dy(int(f.states + k));
    dys.push_back(scan_over(dy, f.out_axes[k], 1 - f.out_backwards[k], element_type(b.type(dy), f.out_axes[k])));
  }
  size_t scan_count = in_axes.size();
  std::vector<ValueId> outs = body.inline_body(forward, args), ys, dy_in, xs;
  for (size_t s = 0; s < flowing.size(); ++s) {
    ys.push_back(outs[flowing[s]]);
    dy_in.push_back(dstate[s]);
    xs.push_back(args[flowing[s]]);
  }
  for (size_t s = 0; s < cotangents.size(); ++s) {
    ys.push_back(outs[f.states + cotangents[s]]);
    dy_in.push_back(dys[s]);
    if (!body.graph().value(dys[s]).type.concrete())
      body.graph().value(dys[s]).type = body.graph().value(ys.back()).type;
  }
  for (ValueId w : captures.wanted) xs.push_back(body.capture(w));
  for (size_t k : scanned) xs.push_back(args[f.states + k]);
  std::vector<ValueId> grads = body.gradients(ys, dy_in, xs);
  GradBuilder in = body.builder();
  for (size_t s = 0; s < flowing.size(); ++s) body.output(grads[s]);
  for (size_t w = 0; w < dcaptured.size(); ++w)
    body.output(in.add_gradients(dcaptured[w], grads[flowing.size() + w]));
  for (size_t s = 0; s < scanned.size(); ++s) {
    body.output(grads[flowing.size() + dcaptured.size() + s]);
    out_axes.push_back(f.in_axes[scanned[s]]);
    out_backwards.push_back(1 - f.in_backwards[scanned[s]]);
  }
  size_t count = body.graph().outputs.size();
  std::vector<ValueId> result(size_t(b.inputs()), kNone);
  if (count == 0) return result;
  std::vector<ValueId> out = b.call_n("Scan", inputs, int(count),
                                      {{"body", body.finish()}, {"num_scan_inputs", int64_t(scan_count)},
                                       {"scan_input_axes", in_axes}, {"scan_input_directions", in_backwards},
                                       {"scan_output_axes", out_axes}, {"scan_output_directions", out_backwards}});
  b.graph().nodes.back().random_stream = kReversedIterations;
  auto give = [&](int input, ValueId v) {
    result[size_t(input)] = v;
    b.graph().value(v).type = b.type(b.x(input));
  };
  for (size_t s = 0; s < flowing.size(); ++s) give(int(flowing[s]), out[s]);
  for (size_t s = 0; s < scanned.size(); ++s) give(int(f.states + scanned[s]), out[flowing.size() + dcaptured.size() + s]);
  std::vector<ValueId> captured(out.begin() + long(flowing.size()), out.begin() + long(flowing.size() + dcaptured.size()));
  for (size_t w = 0; w < captured.size(); ++w) b.graph().value(captured[w]).type = b.type(captures.wanted[w]);
  for (ValueId v : captures.spread(captured)) result.push_back(v);
  return result;
}

}  // namespace

void register_control_scan(OpTable& t) {
  t.add({.name = "Scan", .since = 8, .run_values = run8,
         .no_grad = "Scan of opset 8 (with a batch dimension) has no gradient; convert the model to opset 9 or later"});
  t.add({.name = "Scan", .since = 9, .run_values = run, .grad = grad});
}

}  // namespace onnxtrain::ops
