// MultiUpdate: the updates of many small tensors by one rule, in one pass, or of one tensor whose
// gradient is multiplied by a number first. Made by the passes group_updates and scale_updates;
// never written to files.
#include "ops/optim/optimizer_shape.hpp"
#include "ops/optim/update_kernel.hpp"

namespace onnxtrain::ops {

namespace {

UpdateRule rule_of(const Node& n) {
  std::optional<UpdateRule> rule = UpdateRule::of(n.s("rule", ""), n);
  if (!rule) model_error("OT1134", cat("MultiUpdate: there is no rule '", n.s("rule", ""), "'"));
  return *rule;
}

void shape(ShapeCtx& c) {
  UpdateRule rule = rule_of(c.node());
  int tensors = c.inputs() - rule.scalars - rule.scaled, count = tensors / rule.width();
  if (count < 1 || tensors % rule.width() != 0 || c.outputs() != count * (1 + rule.states))
    model_error("OT1135", cat("MultiUpdate has ", c.inputs(), " inputs and ", c.outputs(),
                              " outputs, which does not fit its rule"));
  for (int i = 0; i < rule.scalars; ++i)
    if (c.in(i).size() != 1) model_error("OT1133", "the scalars of MultiUpdate are no scalars");
  if (rule.scaled && (c.in(c.inputs() - 1).size() != 1 || c.dtype(c.inputs() - 1) != DType::kFloat))
    model_error("OT1133", "the factor of MultiUpdate is no float scalar");
  for (int k = 0; k < count; ++k) {
    int x = rule.scalars + k * rule.width();
    for (int s = 1; s < rule.width(); ++s)
      if (c.shape(x + s) != c.shape(x) || c.dtype(x + s) != c.dtype(x))
        model_error("OT1133", cat("MultiUpdate: inputs ", x, " and ", x + s, " differ in type"));
    for (int o = 0; o <= rule.states; ++o) c.set(k * (1 + rule.states) + o, c.dtype(x), c.shape(x));
  }
}

std::vector<std::pair<int, int>> in_place(const Node& n) {
  std::optional<UpdateRule> rule = UpdateRule::of(n.s("rule", ""), n);
  std::vector<std::pair<int, int>> pairs;
  if (!rule) return pairs;
  int count = (int(n.inputs.size()) - rule->scalars - rule->scaled) / rule->width(),
      outs = 1 + rule->states;
  for (int k = 0; k < count; ++k)
    for (int o = 0; o < outs; ++o)
      pairs.push_back({rule->scalars + k * rule->width() + (o == 0 ? 0 : o + 1), k * outs + o});
  return pairs;
}

}  // namespace

void register_multi_update(OpTable& t) {
  t.add({.name = "MultiUpdate",
         .domain = std::string(kOwnDomain),
         .shape = shape,
         .impls = {{"simd", refuses_simd_update, make_simd_update}},
         .no_grad = "an optimizer's update is not differentiated",
         .in_place_of = in_place});
}

}  // namespace onnxtrain::ops
