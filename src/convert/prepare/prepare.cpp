// Inference model + recipe -> training model: the order of the stages.
#include "convert/prepare.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "convert/analysis.hpp"
#include "convert/lower.hpp"
#include "convert/step/augment.hpp"
#include "convert/step/gradients.hpp"
#include "convert/step/losses.hpp"
#include "convert/step/names.hpp"
#include "convert/step/odd_settings.hpp"
#include "convert/step/optimizers.hpp"
#include "convert/step/reset.hpp"
#include "convert/step/schedules.hpp"
#include "convert/step/training_mode.hpp"
#include "model/trained_outputs.hpp"
#include "model/training_copies.hpp"
#include "onnx/raise.hpp"
#include "op/needs_shape.hpp"

namespace onnxtrain {

namespace {

// What the loss reads of the main graph.
std::vector<ValueId> needed_values(const Graph& main, const std::vector<TermSource>& terms) {
  std::vector<ValueId> v;
  for (const TermSource& t : terms) {
    v.push_back(t.input);
    v.insert(v.end(), t.file_inputs.begin(), t.file_inputs.end());
    for (NodeId k : t.views) {  // the shapes that they are given
      const std::vector<ValueId>& in = main.nodes[size_t(k)].inputs;
      for (size_t i = 1; i < in.size(); ++i)
        if (in[i] != kNone) v.push_back(in[i]);
    }
  }
  return v;
}

// Vectors behind an addition or a normalisation: commonly not decayed.
bool is_bias_or_norm(const ValueDef& d) { return d.constant.rank() <= 1; }

// Losses and gradients need operators of this opset; newer files stay what they are.
constexpr int kOldestOpset = 15, kRaisedOpset = 17;
constexpr int kAugmentOpset = 16;  // GridSample

// Before opset 7, BatchNormalization and Dropout say by is_test what they do; newer opsets have
// only the inference form without more inputs or outputs.
bool has_old_training_form(const Graph& g) {
  return std::any_of(g.nodes.begin(), g.nodes.end(), [](const Node& n) {
    return (n.is("BatchNormalization") || n.is("Dropout")) && n.version < 7 &&
           n.i("is_test", 0) == 0;
  });
}

Model raised(const Model& source, const std::string& mode, const OpTable& ops, bool augmented) {
  auto it = source.opsets.find("");
  if (mode == "as_is" && has_old_training_form(source.main)) return source;
  const int oldest = augmented ? kAugmentOpset : kOldestOpset;
  bool old = it != source.opsets.end() && it->second < oldest && source.training.empty();
  std::optional<Model> m = old ? raise_opset(source, kRaisedOpset, ops) : std::nullopt;
  if (m) return std::move(*m);
  if (old && augmented)
    model_error("OT2214",
                cat("augment needs opset ", kAugmentOpset, ", the model has ", it->second,
                    " and cannot be brought forward"),
                "export the model at opset 17");
  return source;
}

// Which loss and target each output has, when there are several. An output with two of them keeps
// the first.
void note_losses(Model& m, const std::vector<LossTerm>& terms,
                 const std::vector<TermSource>& sources) {
  if (sources.size() < 2) return;
  nlohmann::ordered_json kinds, targets;
  for (size_t k = 0; k < sources.size(); ++k) {
    const TermSource& s = sources[k];
    if (s.file || s.output == kNone) continue;
    const std::string& output = m.main.value_name(s.output);
    if (kinds.contains(output)) continue;
    kinds[output] = s.kind;
    if (s.kind != "output") targets[output] = target_name(m.main, terms[k], k);
  }
  if (!kinds.empty()) m.metadata[kLossesKey] = kinds.dump();
  if (!targets.empty()) m.metadata[kLossTargetsKey] = targets.dump();
}

Model prepare_step(const Model& source, const Recipe& r, const OpTable& ops, Decisions* decided) {
  Model m = raised(source, r.mode, ops, !r.augment.empty());
  m.unshare_main();
  if (!r.append) m.training.clear();
  bool first = m.training.empty();
  fix_sizes(m, r, ops);
  // a lowered step can need the numbers
  if (r.batch == 0 && r.mode == "train" && !r.lowered && first) open_batch(m, ops);
  restore_parameters(m);
  if (r.mode == "train") make_inference_form(m);
  std::vector<LossTerm> terms = terms_of(m, r);
  std::vector<TermSource> sources;
  for (const LossTerm& t : terms)
    sources.push_back(resolve_term(m, t, ops, decided ? &decided->losses : nullptr));
  std::vector<ValueId> parameters =
      parameter_values(m, r, sources, ops, decided ? &decided->left_out : nullptr);

  StepBuilder s(m, ops);
  const ValueId share = add_augmentation(s, r.augment);
  if (r.mode == "train") add_training_copy(s, r, needed_values(m.main, sources), parameters);
  ValueId loss = add_losses(s, terms, sources, share);
  std::vector<Trained> trained;
  for (ValueId v : parameters) {
    const ValueDef& d = m.main.value(v);
    trained.push_back({d.name, s.from_main(v), kNone, is_bias_or_norm(d)});
  }
  add_gradient(s, loss, trained);

  Counter counter;
  counter.value = s.add_state("T", Tensor::scalar<int64_t>(first_step(r.optimizer)));
  counter.name = s.graph().value_name(counter.value);
  counter.next = s.nodes().add(counter.value, s.nodes().constant_int(1));
  DType lr_type =
      m.initializer(trained[0].name)->dtype() == DType::kDouble ? DType::kDouble : DType::kFloat;
  ValueId lr = add_lr(s, r, lr_type);
  Accumulation every = add_accumulation(s, r, trained);
  clip_gradients(s, r, trained);
  size_t before = s.bindings().size();
  add_optimizer(s, r.optimizer, trained, lr, counter);
  s.bind(counter.name, counter.next);
  add_lr_update(s, r, counter, lr);
  only_every(s, every, before);

  if (first) {
    m.metadata["onnxtrain.rate"] = s.graph().value_name(lr);
    m.metadata["onnxtrain.loss"] = sources[0].file ? "custom" : sources[0].kind;
    m.metadata["onnxtrain.output"] = m.main.value_name(sources[0].output);
    note_losses(m, terms, sources);
    if (share != kNone) m.metadata[kMixupShare] = s.graph().value_name(share);
    if (sources[0].class_axis != 1)
      m.metadata["onnxtrain.class_axis"] = std::to_string(sources[0].class_axis);
  }
  m.training.push_back(s.finish(loss));
  if (r.reset) add_reset(m, trained_names(trained), r.seed, ops);
  m.opsets[std::string(kTrainingDomain)] = 1;
  m.opsets[std::string(kOwnDomain)] = 1;
  m.mark_state();
  return m;
}

}  // namespace

LossChoice loss_for_training(const Model& source) {
  Model m = raised(source, "train", all_ops(), false);
  m.unshare_main();
  restore_parameters(m);
  return choose_loss(m);
}

Model prepare(const Model& m, const Recipe& r, const OpTable& ops, Decisions* decided) {
  check_recipe(r);
  Model out = prepare_step(m, r, ops, decided);
  if (decided) decided->settings = odd_settings(r, m);
  if (!r.lowered) return out;
  Model lowered;
  std::optional<NeedsShape> lacking = apply_rules([&] { lowered = lower(out, ops); });
  if (!lacking) return lowered;
  lacking->why.add_place(cat("while lowering", open_sizes(out)));
  throw std::move(lacking->why);
}

}  // namespace onnxtrain
