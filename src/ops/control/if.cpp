// If. Its gradient is an If whose branches compute the gradients of what each branch captures.
#include "ops/control/body.hpp"

namespace onnxtrain::ops {

namespace {

void run(ValueCtx& c) {
  if (!c.has(0)) model_error("OT1107", "the condition is missing");
  bool cond = bool_of(*c.in(0), "the condition of If");
  const char* branch = cond ? "then_branch" : "else_branch";
  check_body(body_of(c.node(), branch), 0, size_t(c.outputs()));
  std::vector<Value> out = c.run_graph(branch, {});
  for (int k = 0; k < c.outputs(); ++k) c.out(k, std::move(out[size_t(k)]));
}

GraphPtr backward_branch(GradBuilder& b, const char* attr, const std::vector<ValueId>& wanted) {
  const Graph& branch = body_of(b.node(), attr);
  BodyBuilder body(b, branch.name + "_grad");
  std::vector<ValueId> outs = body.inline_body(branch, {});
  std::vector<ValueId> ys, dys, xs;
  for (size_t k = 0; k < b.node().outputs.size() && k < outs.size(); ++k) {
    if (!b.has_dy(int(k))) continue;
    ys.push_back(outs[k]);
    dys.push_back(body.capture(b.dy(int(k))));
  }
  for (ValueId w : wanted) xs.push_back(body.capture(w));
  for (ValueId g : body.gradients(ys, dys, xs)) body.output(g);
  return body.finish();
}

std::vector<ValueId> grad(GradBuilder& b) {
  Captures captures = captures_of(b);
  std::vector<ValueId> grads;
  if (!captures.wanted.empty()) {
    GraphPtr then_branch = backward_branch(b, "then_branch", captures.wanted);
    GraphPtr else_branch = backward_branch(b, "else_branch", captures.wanted);
    grads = b.call_n("If", {b.x(0)}, int(captures.wanted.size()),
                     {{"then_branch", then_branch}, {"else_branch", else_branch}});
    b.graph().nodes.back().random_stream = kRepeatsForward;
    for (size_t w = 0; w < grads.size(); ++w)
      b.graph().value(grads[w]).type = b.type(captures.wanted[w]);
  }
  std::vector<ValueId> out = {kNone};
  for (ValueId v : captures.spread(grads)) out.push_back(v);
  return out;
}

}  // namespace

void register_if(OpTable& t) { t.add({.name = "If", .run_values = run, .grad = grad}); }

}  // namespace onnxtrain::ops
