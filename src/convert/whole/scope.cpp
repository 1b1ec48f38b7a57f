// Bodies of loops and scans, written from the inside.
#include "convert/whole/scope.hpp"

namespace onnxtrain::whole {

ValueId Scope::use(const Scope& from, ValueId v) {
  if (&from == this) return v;
  const ValueId outer = around_->use(from, v);
  if (const auto it = captured_.find(outer); it != captured_.end()) return it->second;
  const ValueDef& d = around_->g.value(outer);
  const ValueId inner = g.add_value(d.name, d.type);
  g.captures.push_back({outer, inner});
  return captured_[outer] = inner;
}

ValueId Scope::slice_rows(ValueId v, ValueId from, ValueId to) {
  const ValueId part = b.call("Slice", {v, from, to, one(0)});
  TypeInfo t = g.value(v).type;
  if (t.shape && !t.shape->empty()) (*t.shape)[0] = {};
  g.value(part).type = t;
  return part;
}

namespace {

TypeInfo stacked(TypeInfo t) {
  if (t.shape) t.shape->insert(t.shape->begin(), Dim{});
  return t;
}

TypeInfo item(TypeInfo t) {
  if (t.shape && !t.shape->empty()) t.shape->erase(t.shape->begin());
  return t;
}

}  // namespace

void Scope::give_back(Scope& body, const Values& start, const Values& carried,
                      const Values& collected) const {
  for (size_t k = 0; k < carried.size(); ++k) {
    const ValueId out = body.own(carried[k]);
    body.g.value(out).type = g.value(start[k]).type;
    body.g.outputs.push_back(out);
  }
  for (ValueId v : collected) body.g.outputs.push_back(body.own(v));
}

Scope::Result Scope::finish(Node n, Scope& body, const Values& start, size_t collected) {
  const bool loop = n.is("Loop");
  n.version = opset_;
  body.g.renumber();
  n.attrs["body"] = std::make_shared<Graph>(body.g.clone());
  const Values outs = g.add_node(std::move(n), int(start.size() + collected));
  g.nodes.back().name = g.value_name(outs[0]);
  Result r;
  const size_t first = loop ? 1 : 0;
  for (size_t k = 0; k < outs.size(); ++k) {
    const TypeInfo inner = body.g.value(body.g.outputs[first + k]).type;
    const bool carried = k < start.size();
    g.value(outs[k]).type = carried ? g.value(start[k]).type : stacked(inner);
    (carried ? r.carried : r.collected).push_back(outs[k]);
  }
  return r;
}

Scope::Result Scope::loop(ValueId trips, const Values& start, const LoopBody& make) {
  Scope body(ops_, opset_, this);
  const ValueId iteration = body.g.add_value("iteration", TypeInfo::tensor(DType::kInt64, {}));
  const ValueId go = body.g.add_value("go", TypeInfo::tensor(DType::kBool, {}));
  body.g.inputs = {iteration, go};
  Values carried;
  for (ValueId v : start) carried.push_back(body.g.add_value(g.value_name(v), g.value(v).type));
  body.g.inputs.insert(body.g.inputs.end(), carried.begin(), carried.end());
  ValueId go_on = go;
  const Values collected = make(body, iteration, carried, go_on);
  body.g.outputs = {body.own(go_on)};
  give_back(body, start, carried, collected);
  Node n;
  n.op = "Loop";
  n.inputs = {trips, truth(true)};
  n.inputs.insert(n.inputs.end(), start.begin(), start.end());
  return finish(std::move(n), body, start, collected.size());
}

Scope::Result Scope::scan(const Values& over, const Values& start, const ScanBody& make) {
  Scope body(ops_, opset_, this);
  Values carried, items;
  for (ValueId v : start) carried.push_back(body.g.add_value(g.value_name(v), g.value(v).type));
  for (ValueId v : over) items.push_back(body.g.add_value("rows", item(g.value(v).type)));
  body.g.inputs = carried;
  body.g.inputs.insert(body.g.inputs.end(), items.begin(), items.end());
  const Values collected = make(body, items, carried);
  give_back(body, start, carried, collected);
  Node n;
  n.op = "Scan";
  n.inputs = start;
  n.inputs.insert(n.inputs.end(), over.begin(), over.end());
  n.attrs["num_scan_inputs"] = int64_t(over.size());
  return finish(std::move(n), body, start, collected.size());
}

}  // namespace onnxtrain::whole
