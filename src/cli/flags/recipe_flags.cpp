// Flags -> Recipe.
#include "cli/flags/recipe_flags.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "cli/flags/preprocess_flags.hpp"
#include "core/error.hpp"

namespace onnxtrain::cli {

namespace {

// "milestones=100,200"
std::vector<int64_t> milestones(const std::string& s) {
  std::vector<int64_t> list;
  for (size_t at = s.find('=') + 1; at <= s.size();) {
    char* end = nullptr;
    list.push_back(std::strtoll(s.c_str() + at, &end, 10));
    const size_t stop = size_t(end - s.c_str());
    if (stop == at || list.back() < 0 || (stop < s.size() && s[stop] != ','))
      usage_error("OT0003", cat("--schedule-arg ", s, ": the steps are numbers with commas"),
                  "for example --schedule-arg milestones=100,200");
    at = stop + 1;
  }
  return list;
}

// "0.5,2"
std::vector<float> numbers(const std::string& text, const char* fix) {
  std::vector<float> list;
  for (const std::string& part : comma_list(text)) {
    char* end = nullptr;
    list.push_back(std::strtof(part.c_str(), &end));
    if (*end != '\0' || !(list.back() >= 0) || !std::isfinite(list.back()))
      usage_error("OT0003", cat("'", part, "' is no weight: a number from 0 on"), fix);
  }
  if (list.empty()) usage_error("OT0003", "a weight is a number from 0 on", fix);
  if (std::all_of(list.begin(), list.end(), [](float w) { return w == 0; }))
    usage_error("OT0003", cat("weights of ", text, " leave nothing to learn: one must be positive"),
                fix);
  return list;
}

// "beta2=0.98"
std::pair<std::string, double> key_and_number(const char* flag, const std::string& s) {
  const size_t eq = s.find('=');
  char* end = nullptr;
  const double v = eq == std::string::npos ? 0 : std::strtod(s.c_str() + eq + 1, &end);
  if (eq == std::string::npos || end == s.c_str() + eq + 1 || *end != '\0')
    usage_error("OT0003", cat(flag, " takes KEY=NUMBER, got '", s, "'"),
                cat("for example  ", flag, " ", s.substr(0, eq), "=0.9"));
  return {s.substr(0, eq), v};
}

// "adadelta|adagrad|...|FILE.onnx"
std::string optimizer_words() {
  std::string words;
  for (const Optimizer* o : all_ops().optimizers())
    if (o->attributes.empty()) words += cat(o->kind, "|");
  return words + "FILE.onnx";
}

// The optimizers that have this setting.
std::string with_setting(const char* name) {
  std::string list;
  for (const Optimizer* o : all_ops().optimizers())
    if (o->setting(name)) list += cat(list.empty() ? "" : ", ", o->kind);
  return list;
}

}  // namespace

void RecipeFlags::add_to(Registry& r, CLI::App* c, bool brief) {
  app_ = c;
  with_data_ = brief;
  const char* g = "Optimisation";
  auto more = [&](CLI::Option* o) { return brief ? r.rare(o, g) : o->group(g); };
  c->add_option("--loss", loss,
                "auto|cross_entropy|nll|mse|l1|huber|bce|bce_logits|kl|hinge|FILE.onnx; several: "
                "OUTPUT=KIND:WEIGHT, once for each output")
      ->multi_option_policy(CLI::MultiOptionPolicy::Join)
      ->delimiter(',')
      ->group(g);
  c->add_option("--optimizer", optimizer, optimizer_words())->group(g);
  c->add_option("--lr,--learning-rate", lr, "learning rate")->check(CLI::PositiveNumber)->group(g);
  c->add_option("--schedule", schedule,
                "constant|step|multistep|exponential|cosine|linear|onecycle|polynomial")
      ->group(g);
  more(c->add_option("--label", label, "name of the target input"));
  more(c->add_option("--loss-input", output, "model output the loss applies to"));
  more(c->add_option("--weight-decay", weight_decay, "weight decay"));
  more(c->add_option("--momentum", momentum, cat("momentum of ", with_setting("momentum"))));
  more(c->add_option("--optimizer-arg", optimizer_numbers,
                     "KEY=NUMBER of the optimizer, e.g. beta2=0.98 (docs/recipe.md)"));
  more(c->add_option("--schedule-arg", schedule_numbers,
                     "KEY=NUMBER of the schedule, e.g. warmup_steps=100; milestones=100,200"));
  more(c->add_option("--clip", clip, "clip gradients by global norm"));
  more(c->add_option("--clip-value", clip_value, "clip gradients element by element"));
  more(c->add_option(
      "--class-weights", class_weights,
      "of classes in cross_entropy: balanced (by their number of rows), or W0,W1,..."));
  more(c->add_option("--label-smoothing", label_smoothing, "for cross_entropy"));
  more(c->add_option("--ignore-index", ignore_index, "a class label that the loss ignores"));
  more(c->add_option("--freeze", freeze, "globs of parameters to leave alone"));
  more(c->add_option("--only", only, "globs of parameters to train"));
  more(c->add_option("--accumulate", accumulate, "steps per update")->check(CLI::PositiveNumber));
  more(c->add_option("--bn-variance", bn_variance,
                     "running variance of BatchNormalization: torch (unbiased) or onnx (population "
                     "variance)")
           ->check(CLI::IsMember({"torch", "onnx"})));
  more(c->add_option("--augment", augment,
                     "random changes of images in training only: "
                     "flip,crop:4,rotate:10,color:0.2,cutout:8,mixup:0.2,FILE.onnx"));
  more(c->add_flag("--reset", reset, "new initial values"));
  more(c->add_flag("--strict", strict, "weights that would not train are an error"));
  more(c->add_flag("--as-is", as_is, "differentiate the graph exactly as written"));
}

std::string RecipeFlags::first_given() const {
  for (const char* flag :
       {"--loss",          "--optimizer",       "--optimizer-arg", "--weight-decay",
        "--momentum",      "--schedule",        "--schedule-arg",  "--clip",
        "--clip-value",    "--freeze",          "--only",          "--accumulate",
        "--reset",         "--label-smoothing", "--ignore-index",  "--label",
        "--loss-input",    "--as-is",           "--bn-variance",   "--strict",
        "--class-weights", "--augment"})
    if (app_->get_option(flag)->count() > 0) return flag;
  return {};
}

void RecipeFlags::set_optimizer(OptimizerSpec& o) const {
  const Optimizer* record = all_ops().optimizer(optimizer);
  auto set = [&](const std::string& flag, const std::string& key, double value) {
    if (!record || !record->setting(key)) {
      std::string known, others = with_setting(key.c_str());
      for (size_t k = 0; record && k < record->settings.size(); ++k)
        known += cat(k ? ", " : "", record->settings[k].name);
      usage_error("OT1235", cat(flag, " does not belong to the optimizer ", optimizer),
                  !others.empty() ? cat("optimizers that have it:  --optimizer ",
                                        others.substr(0, others.find(',')), "   (", others, ")")
                                  : cat("leave it out; ", optimizer, " has ", known));
    }
    o.settings[key] = value;
  };
  if (momentum) set("--momentum", "momentum", *momentum);
  for (const std::string& s : optimizer_numbers) {
    const auto [key, value] = key_and_number("--optimizer-arg", s);
    const bool twice = (key == "lr" && lr) || (key == "momentum" && momentum) ||
                       (key == "weight_decay" && weight_decay);
    if (twice)
      usage_error("OT0001", cat("--optimizer-arg ", s, " and the option for it were both given"),
                  cat("leave --optimizer-arg ", s, " out"));
    set("--optimizer-arg " + key, key, value);
    if (key == "lr") o.lr = value;
    if (key == "weight_decay") o.weight_decay = value;
    if (key == "no_decay_on_bias_and_norm") o.no_decay_on_bias_and_norm = value != 0;
  }
}

std::vector<LossTerm> RecipeFlags::loss_terms() const {
  LossTerm term;
  term.kind = loss;
  term.label = label;
  term.output = output;
  term.label_smoothing = label_smoothing;
  term.ignore_index = ignore_index;
  if (balanced() && !with_data_)
    usage_error("OT0039",
                "--class-weights balanced counts the rows of the data, and prepare has none",
                "onnxtrain train MODEL --data DATA --class-weights balanced, or numbers:  "
                "--class-weights 1,2");
  if (!class_weights.empty() && !balanced())
    term.class_weights = numbers(class_weights, "--class-weights balanced");
  if (loss.find('=') == std::string::npos) {
    if (loss.find(',') != std::string::npos)
      usage_error("OT0003",
                  cat("--loss was given as ", loss, ": several losses name their outputs"),
                  "give one, or OUTPUT=KIND for each:  --loss price=mse --loss size=l1");
    return {term};
  }
  if (!label.empty() || !output.empty())
    usage_error("OT0003", "--label and --loss-input are for one loss, --loss names several",
                "remove --label and --loss-input: every --loss names its output");
  std::vector<LossTerm> all;
  for (const std::string& text : comma_list(loss)) {
    const size_t eq = text.find('='), colon = text.find(':', std::min(eq, text.size()));
    if (eq == std::string::npos || eq == 0)
      usage_error("OT0003", cat("--loss ", text, ": several losses are OUTPUT=KIND:WEIGHT"),
                  "for example --loss price=mse:1 --loss size=l1:0.5");
    LossTerm t = term;
    t.output = text.substr(0, eq);
    t.kind = text.substr(eq + 1, colon == std::string::npos ? colon : colon - eq - 1);
    if (colon != std::string::npos) {
      const std::vector<float> weight = numbers(text.substr(colon + 1), "--loss price=mse:0.5");
      t.weight = weight[0];
    }
    all.push_back(std::move(t));
  }
  return all;
}

Recipe RecipeFlags::recipe(uint64_t seed, int64_t steps) const {
  Recipe r;
  r.losses = loss_terms();
  r.optimizer.kind = optimizer;
  r.optimizer.lr = lr;
  r.optimizer.weight_decay = weight_decay;
  set_optimizer(r.optimizer);
  r.schedule.kind = schedule;
  if (steps > 0) r.schedule.numbers["total_steps"] = double(steps);
  for (const std::string& s : schedule_numbers) {
    if (s.starts_with("milestones=")) {
      r.schedule.milestones = milestones(s);
      continue;
    }
    const auto [key, value] = key_and_number("--schedule-arg", s);
    r.schedule.numbers[key] = value;
  }
  r.clip_norm = clip;
  r.clip_value = clip_value;
  r.freeze = freeze;
  r.only = only;
  r.accumulate = accumulate;
  r.bn_variance = bn_variance;
  r.reset = reset;
  r.augment = augment;
  r.strict = strict;
  r.lowered = lowered;
  r.mode = as_is ? "as_is" : "train";
  r.seed = seed;
  return r;
}

}  // namespace onnxtrain::cli
