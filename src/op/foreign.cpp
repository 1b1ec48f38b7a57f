// The records of foreign nodes.
#include "op/foreign.hpp"

#include <mutex>

#include "op/grad_builder.hpp"

namespace onnxtrain {

namespace {

std::mutex& lock() {
  static std::mutex m;
  return m;
}
std::shared_ptr<ForeignRunner>& slot() {
  static std::shared_ptr<ForeignRunner> r;
  return r;
}

void run_one(ValueCtx& c) {
  Graph part;
  part.name = "part";
  Node n = c.node();
  n.attrs.erase(std::string(kGradientBody));
  for (size_t k = 0; k < n.inputs.size(); ++k) {
    if (n.inputs[k] == kNone) continue;
    n.inputs[k] = part.add_value(cat("in", k));
    part.inputs.push_back(n.inputs[k]);
  }
  const size_t outputs = n.outputs.size();
  std::vector<char> wanted;
  for (ValueId v : n.outputs) wanted.push_back(v != kNone);
  part.nodes.push_back(std::move(n));
  for (size_t k = 0; k < outputs; ++k) {
    const ValueId v = wanted[k] ? part.add_value(cat("out", k)) : kNone;
    part.nodes[0].outputs[k] = v;
    if (v != kNone) part.outputs.push_back(v);
  }
  part.renumber();
  run_foreign_graph(part, c);
}

// From the function OP_grad of the file, or by the operator OP_grad that somebody registered.
std::vector<ValueId> gradient(GradBuilder& b) {
  const Node n = b.node();
  std::vector<ValueId> in = n.inputs;
  in.insert(in.end(), n.outputs.begin(), n.outputs.end());
  for (size_t k = 0; k < n.outputs.size(); ++k)
    in.push_back(n.outputs[k] == kNone ? kNone : b.dy(int(k)));
  if (const GraphPtr body = n.graph(kGradientBody)) {
    if (body->inputs.size() != in.size())
      model_error("OT1782", cat("the function ", n.op, kGradientEnding, " has ",
                                body->inputs.size(), " inputs; the gradient of ", n.label(),
                                " gives ", in.size(), ": inputs, outputs and dY"));
    return b.graph().append(*body, in, {});
  }
  Node g;
  g.domain = n.domain;
  g.op = n.op + kGradientEnding;
  g.version = opset_of_foreign(n) + kForeignVersion + kForeignGradient;
  g.attrs = n.attrs;
  g.inputs = in;
  std::vector<ValueId> out = b.graph().add_node(std::move(g), int(n.inputs.size()));
  b.graph().nodes.back().name = b.graph().value_name(out[0]);
  for (size_t k = 0; k < n.inputs.size(); ++k)
    if (n.inputs[k] != kNone) b.graph().value(out[k]).type = b.type(n.inputs[k]);
  return out;
}

}  // namespace

void set_foreign_runner(std::shared_ptr<ForeignRunner> r) {
  const std::lock_guard guard(lock());
  slot() = std::move(r);
}

std::shared_ptr<ForeignRunner> foreign_runner() {
  const std::lock_guard guard(lock());
  return slot();
}

const Op* foreign_op(std::string_view domain, std::string_view name, int version) {
  static const Op opaque{
      .name = "Foreign",
      .run_values = run_one,
      .no_grad =
          "another runtime runs it and nobody said its gradient: a function of the file "
          "called like it with _grad at the end, or ot.register_op(domain, type, gradient=...)"};
  static const Op with_gradient{.name = "Foreign", .run_values = run_one, .grad = gradient};
  const std::shared_ptr<ForeignRunner> r = foreign_runner();
  if (!r) return nullptr;
  const bool has = (version & kForeignWithGradient) != 0 ||
                   r->has_gradient(std::string(domain), std::string(name));
  return has ? &with_gradient : &opaque;
}

void run_foreign_graph(const Graph& part, ValueCtx& c) {
  const std::shared_ptr<ForeignRunner> r = foreign_runner();
  if (!r) model_error("OT1780", cat(c.node().label(), " needs another runtime, and none is set"));
  std::vector<const Tensor*> in;
  for (int k = 0; k < c.inputs(); ++k) {
    if (!c.in(k)) continue;
    const Tensor* t = std::get_if<Tensor>(c.in(k));
    if (!t || t->dtype() == DType::kString)
      model_error("OT1780", cat("input ", k, " of ", c.node().label(),
                                " is no tensor of numbers: only those go to ", r->name()));
    in.push_back(t);
  }
  std::vector<Tensor> out = r->run(part, in);
  if (out.size() != part.outputs.size())
    model_error("OT1780", cat(r->name(), " returned ", out.size(), " results for ",
                              c.node().label(), ", which has ", part.outputs.size()));
  size_t at = 0;
  for (int k = 0; k < c.outputs(); ++k)
    if (c.wants(k)) c.out(k, std::move(out[at++]));
}

}  // namespace onnxtrain
