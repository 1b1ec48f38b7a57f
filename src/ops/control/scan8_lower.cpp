// Scan of opset 8 in later operators: a Scan over the rows of the batch, whose body cuts a row to
// its length, scans it, and fills what lies behind with zeros.
#include "ops/control/body.hpp"

namespace onnxtrain::ops {

namespace {

TypeInfo without_first(const TypeInfo& t) {
  TypeInfo e = t;
  if (t.is_tensor() && t.shape && !t.shape->empty()) e.shape->erase(e.shape->begin());
  return e;
}

// [length, ...] -> [longest, ...]
ValueId fill_up(GradBuilder& b, ValueId v, ValueId longest, ValueId length) {
  ValueId rest =
      b.call("Slice", {b.call("Shape", {v}), b.constant_ints({1}), b.constant_ints({INT64_MAX})});
  ValueId shape = b.call("Concat", {b.sub(longest, length), rest}, {{"axis", int64_t(0)}});
  ValueId zero = b.call("Expand", {b.scalar(0, v), shape});
  return b.call("Concat", {v, zero}, {{"axis", int64_t(0)}});
}

}  // namespace

std::vector<ValueId> lower_scan8(GradBuilder& b) {
  const Node& n = b.node();
  size_t inputs = n.inputs.size() - 1, scanned = size_t(n.i("num_scan_inputs", 0));
  if (scanned < 1 || scanned > inputs)
    model_error("OT1152",
                cat("num_scan_inputs is ", scanned, ", the node has ", inputs, " inputs"));
  size_t states = inputs - scanned;
  const Graph& forward = body_of(n, "body");
  check_body(forward, inputs, states);
  BodyBuilder row(b, forward.name + "_row");
  std::vector<ValueId> outer, inner;
  for (size_t k = 1; k < n.inputs.size(); ++k) {
    outer.push_back(n.inputs[k]);
    inner.push_back(row.input("row", without_first(b.type(n.inputs[k]))));
  }
  GradBuilder in = row.builder();
  ValueId length = kNone, longest = kNone;
  if (b.has(0)) {
    outer.push_back(n.inputs[0]);
    length = in.unsqueeze(row.input("length", TypeInfo::tensor(DType::kInt64, {})), {0});
    longest = in.call(
        "Slice", {in.call("Shape", {inner[states]}), in.constant_ints({0}), in.constant_ints({1})});
    for (size_t k = states; k < inputs; ++k)
      inner[k] = in.call("Slice", {inner[k], in.constant_ints({0}), length});
  }
  auto body = std::make_shared<Graph>(forward.clone());
  for (auto& c : body->captures) c.outer = row.capture(c.outer);
  GradBuilder::Attrs attrs{{"body", GraphPtr(body)}, {"num_scan_inputs", int64_t(scanned)}};
  if (const Attr* d = n.find("directions")) attrs["scan_input_directions"] = *d;
  std::vector<ValueId> outs = in.call_n("Scan", inner, int(body->outputs.size()), attrs);
  for (size_t k = 0; k < outs.size(); ++k) {
    TypeInfo declared = body->value(body->outputs[k]).type;
    ValueId v = outs[k];
    if (row.graph().value(v).type.elem == DType::kUndefined && declared.is_tensor())
      row.graph().value(v).type = TypeInfo::tensor(declared.elem);
    row.output(k >= states && length != kNone ? fill_up(in, v, longest, length) : v);
  }
  std::vector<ValueId> made =
      b.call_n("Scan", outer, int(outs.size()),
               {{"body", row.finish()}, {"num_scan_inputs", int64_t(outer.size())}});
  for (size_t k = 0; k < made.size() && k < n.outputs.size(); ++k)
    if (n.outputs[k] != kNone) b.graph().value(made[k]).type = b.type(n.outputs[k]);
  made.resize(std::max(made.size(), n.outputs.size()), kNone);
  return made;
}

}  // namespace onnxtrain::ops
