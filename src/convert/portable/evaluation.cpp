// Validation as a section without updates.
#include "convert/portable/evaluation.hpp"

#include "graph/reads.hpp"
#include "model/training_copies.hpp"

namespace onnxtrain::portable {

Model evaluation_model(const Model& m, const Scores& scores) {
  Model e = m;
  TrainingStep step = e.training[0];
  Graph& a = step.edit_algorithm();
  a = a.clone();
  auto captured = [&](ValueId outer) {
    for (const auto& c : a.captures)
      if (c.outer == outer) return c.inner;
    const ValueDef& d = m.main.value(outer);
    const ValueId v = a.add_value(d.name, d.type);
    a.captures.push_back({outer, v});
    return v;
  };
  const size_t values = a.values.size();
  for (size_t k = 0; k < values; ++k)
    if (const ValueId form = a.values[k].inference_form; form != kNone)
      a.replace_uses(ValueId(k), captured(form));
  leave_out_mixup(a, m.metadata);
  ValueId loss = kNone;
  for (ValueId v : a.outputs) {
    const ValueDef& d = a.value(v);
    const bool scalar = d.type.is_tensor() && dtype_is_float(d.type.elem) &&
                        (!d.type.shape || d.type.shape->empty());
    if (d.name == "loss" || (scalar && loss == kNone)) loss = v;
    if (d.name == "loss") break;
  }
  a.outputs.clear();
  if (loss != kNone) a.outputs.push_back(loss);
  if (scores.value != kNone) {
    Node id;
    id.op = "Identity";
    id.version = m.opsets.contains("") ? m.opsets.at("") : 17;
    id.inputs = {captured(scores.value)};
    const ValueId out = a.add_node(std::move(id), 1)[0];
    a.value(out).type = m.main.value(scores.value).type;
    a.value(out).name = kScoresOutput;
    a.outputs.push_back(out);
  }
  a.remove_dead();
  a.renumber();
  const std::vector<char> read = values_read(a);
  std::erase_if(a.inputs, [&](ValueId v) { return !read[size_t(v)]; });
  step.edit_initialization() = {};
  step.initialization_binding.clear();
  step.update_binding.clear();
  step.source_index = -1;
  e.training.insert(e.training.begin(), std::move(step));
  return e;
}

StepModel make_evaluation(const Model& m, const StepOptions& o, const OpTable& ops) {
  if (m.training.empty()) usage_error("OT1261", "the file has no training section");
  const Model e = evaluation_model(m, describe_scores(m));
  if (e.training[0].algorithm.outputs.empty())
    model_error("OT1772", "the training has neither a loss nor scores that could be evaluated");
  return make_step(e, 0, o, ops);
}

}  // namespace onnxtrain::portable
