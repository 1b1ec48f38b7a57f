// Flags -> Recipe.
#include "cli/recipe_flags.hpp"

#include <cstdlib>
#include <set>

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

}  // namespace

void RecipeFlags::add_to(Registry& r, CLI::App* c, bool brief) {
  app_ = c;
  const char* g = "Optimisation";
  auto more = [&](CLI::Option* o) { return brief ? r.rare(o, g) : o->group(g); };
  c->add_option("--loss", loss,
                "auto|cross_entropy|nll|mse|l1|huber|bce|bce_logits|kl|hinge|FILE.onnx")
      ->group(g);
  c->add_option("--optimizer", optimizer,
                "sgd|momentum|nesterov|adam|adamw|adagrad|rmsprop|lion|lamb|FILE.onnx")
      ->group(g);
  c->add_option("--lr", lr, "learning rate")->check(CLI::PositiveNumber)->group(g);
  c->add_option("--schedule", schedule,
                "constant|step|multistep|exponential|cosine|linear|onecycle|polynomial")
      ->group(g);
  more(c->add_option("--label", label, "name of the target input"));
  more(c->add_option("--loss-input", output, "model output the loss applies to"));
  more(c->add_option("--weight-decay", weight_decay, "weight decay"));
  more(c->add_option("--momentum", momentum, "momentum of sgd, momentum, nesterov, rmsprop"));
  more(c->add_option("--schedule-arg", schedule_numbers,
                     "KEY=NUMBER of the schedule, e.g. warmup_steps=100; milestones=100,200"));
  more(c->add_option("--clip", clip, "clip gradients by global norm"));
  more(c->add_option("--clip-value", clip_value, "clip gradients element by element"));
  more(c->add_option("--label-smoothing", label_smoothing, "for cross_entropy"));
  more(c->add_option("--ignore-index", ignore_index, "a class label that counts nothing"));
  more(c->add_option("--freeze", freeze, "globs of parameters to leave alone"));
  more(c->add_option("--only", only, "globs of parameters to train"));
  more(c->add_option("--accumulate", accumulate, "steps per update")->check(CLI::PositiveNumber));
  more(c->add_option("--bn-variance", bn_variance,
                     "running variance of BatchNormalization: torch (unbiased) or onnx (population "
                     "variance)")
           ->check(CLI::IsMember({"torch", "onnx"})));
  more(c->add_flag("--reset", reset, "new initial values"));
  more(c->add_flag("--as-is", as_is, "differentiate the graph exactly as written"));
}

std::string RecipeFlags::first_given() const {
  for (const char* flag : {"--loss", "--optimizer", "--weight-decay", "--momentum", "--schedule",
                           "--schedule-arg", "--clip", "--clip-value", "--freeze", "--only",
                           "--accumulate", "--reset", "--label-smoothing", "--ignore-index",
                           "--label", "--loss-input", "--as-is", "--bn-variance"})
    if (app_->get_option(flag)->count() > 0) return flag;
  return {};
}

Recipe RecipeFlags::recipe(uint64_t seed, int64_t steps) const {
  Recipe r;
  LossTerm term;
  term.kind = loss;
  term.label = label;
  term.output = output;
  term.label_smoothing = label_smoothing;
  term.ignore_index = ignore_index;
  r.losses = {term};
  r.optimizer.kind = optimizer;
  r.optimizer.lr = lr;
  r.optimizer.weight_decay = weight_decay;
  const bool has_momentum = optimizer == "momentum" || optimizer == "nesterov";
  static const std::set<std::string> with_momentum = {"sgd", "momentum", "nesterov", "rmsprop"};
  if (momentum && with_momentum.count(optimizer) == 0)
    usage_error("OT1235", cat("--momentum does not belong to the optimizer ", optimizer),
                "for example --optimizer sgd --momentum 0.9");
  r.optimizer.momentum = momentum.value_or(has_momentum ? 0.9 : 0);
  r.optimizer.nesterov = optimizer == "nesterov";
  r.schedule.kind = schedule;
  if (steps > 0) r.schedule.numbers["total_steps"] = double(steps);
  for (const std::string& s : schedule_numbers) {
    size_t eq = s.find('=');
    char* end = nullptr;
    if (s.starts_with("milestones=")) {
      r.schedule.milestones = milestones(s);
      continue;
    }
    double v = eq == std::string::npos ? 0 : std::strtod(s.c_str() + eq + 1, &end);
    if (eq == std::string::npos || *end != '\0')
      usage_error("OT0003", "--schedule-arg takes KEY=NUMBER, got '" + s + "'");
    r.schedule.numbers[s.substr(0, eq)] = v;
  }
  r.clip_norm = clip;
  r.clip_value = clip_value;
  r.freeze = freeze;
  r.only = only;
  r.accumulate = accumulate;
  r.bn_variance = bn_variance;
  r.reset = reset;
  r.lowered = lowered;
  r.mode = as_is ? "as_is" : "train";
  r.seed = seed;
  return r;
}

}  // namespace onnxtrain::cli
