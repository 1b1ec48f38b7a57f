// Bounds far outside of what anybody trains with; decision 0275 has the table.
#include "convert/step/odd_settings.hpp"

#include <algorithm>
#include <cmath>

#include "convert/analysis.hpp"
#include "convert/step/names.hpp"
#include "convert/step/optimizers.hpp"
#include "convert/step/schedules.hpp"
#include "core/text.hpp"

namespace onnxtrain {

namespace {

constexpr double kSmoothing = 0.5;  // of the target: more than the right class itself
constexpr double kHeavy = 1e9;
constexpr double kDropout = 0.9;  // of the values: ten times fewer are left
constexpr double kMomentum = 0.999;
constexpr double kClip = 1e-4;
constexpr double kShrink = 0.5;      // of a weight, in one step
constexpr double kSmallest = 1e-10;  // of a learning rate
constexpr double kRaised = 1.01;
constexpr double kEnded = 1e-5;  // of the largest learning rate

using Found = std::vector<OddSetting>;

double get(const OptimizerSettings& s, const Optimizer& record, const char* name) {
  return record.setting(name) ? s[name] : 0;
}

void look_at_losses(const Recipe& r, Found& found) {
  for (const LossTerm& t : r.losses) {
    if (t.label_smoothing > kSmoothing)
      found.push_back({cat("label smoothing ", t.label_smoothing,
                           ": in the target the right class counts only ", 1 - t.label_smoothing,
                           " more than every other one, so hardly anything tells them apart"),
                       "usual is 0.1:  --label-smoothing 0.1"});
    if (t.weight == 0)
      found.push_back({cat("the loss ", t.kind, t.output.empty() ? "" : " on output '" + t.output,
                           t.output.empty() ? "" : "'", " has the weight 0: it teaches nothing"),
                       "leave the term out, or give it a weight above 0"});
    for (size_t k = 0; k < t.class_weights.size(); ++k)
      if (t.class_weights[k] == 0)
        found.push_back({cat("class ", k, " has the weight 0: nothing is learnt from its rows"),
                         "a weight above 0, or leave the rows out"});
    if (t.weight >= kHeavy)
      found.push_back({cat("the loss ", t.kind, " has the weight ", t.weight,
                           ": squares of its gradients can be larger than float32 holds"),
                       "a weight of at most 65536"});
    if (t.weight < 0)
      found.push_back({cat("the loss ", t.kind, " has the weight ", t.weight,
                           ": training makes it larger, not smaller"),
                       "a weight above 0, unless that is meant"});
  }
}

void look_at_averages(const OptimizerSpec& o, const Optimizer& record, const OptimizerSettings& s,
                      Found& found) {
  const double beta1 = get(s, record, "beta1"), beta2 = get(s, record, "beta2");
  if (beta1 > beta2)
    found.push_back({cat("beta1 ", beta1, " is larger than beta2 ", beta2,
                         ": the scale of the updates follows single gradients. Exchanged?"),
                     cat("--optimizer-arg beta1=", beta2, " --optimizer-arg beta2=", beta1)});
  const double momentum = get(s, record, "momentum");
  if (momentum >= kMomentum)
    found.push_back({cat("momentum ", momentum, " adds up ", std::round(1 / (1 - momentum)),
                         " gradients: updates grow to as many times the learning rate"),
                     "usual is 0.9:  --momentum 0.9"});
  if (get(s, record, "dampening") >= 1 && !record.node(s).state.empty())
    found.push_back({cat("dampening ", s["dampening"], " with momentum: only the first gradient ",
                         s["dampening"] > 1 ? "counts, later ones count in the wrong direction"
                                            : "is ever used"),
                     "--optimizer-arg dampening=0"});
  for (const char* name : {"alpha", "rho"})
    if (record.setting(name) && s[name] == 1)
      found.push_back({cat(name,
                           " 1: the average of squared gradients stays at its first value, "
                           "so updates are not scaled by any gradient"),
                       cat("--optimizer-arg ", name, "=", record.setting(name)->value)});
  if (get(s, record, "eps") > 1)
    found.push_back(
        {cat("eps ", s["eps"], " is larger than any usual gradient: updates are divided by it"),
         cat("--optimizer-arg eps=", record.setting("eps")->value)});
  for (const auto& [name, value] : o.attributes)
    if ((name == "alpha" || name == "beta") && value >= 1 &&
        !(o.kind == "onnx_momentum" && name == "beta"))
      found.push_back(
          {cat(name, " ", value, " of ", o.kind, " is a share of an average: 1 or more ",
               "lets it stand still or grow without end"),
           cat("between 0 and 1, for example 0.9")});
}

void look_at_decay(const OptimizerSpec& o, const Optimizer& record, Found& found) {
  const double lr = default_lr(o);
  auto look = [&](const std::string& of, std::optional<double> decay, double scale) {
    const double share = lr * scale * record.node(settings_of(o, decay)).shrink;
    if (!(share >= kShrink)) return false;
    found.push_back({cat("learning rate ", lr * scale, " times weight decay ", share / (lr * scale),
                         " is ", share, of, ": every step ",
                         share > 1   ? "takes more than the whole weight away, so its sign changes"
                         : share < 1 ? cat("takes ", 100 * share, " % of each weight away")
                                     : std::string("takes the whole weight away")),
                     "--weight-decay 0.01, or a smaller learning rate"});
    return true;
  };
  if (look("", {}, 1)) return;
  for (const ParameterOverride& x : o.overrides)
    if (look(cat(" for '", x.glob, "'"), x.weight_decay, x.lr_scale)) return;
}

// A learning rate with which no weight of float32 moves, whatever the optimizer makes of it.
void look_at_lr(const Recipe& r, Found& found) {
  const double lr = default_lr(r.optimizer);
  double weight = r.losses.empty() ? 1 : 0;
  for (const LossTerm& t : r.losses) weight += std::fabs(t.weight);
  if (lr > 0 && lr * std::max(1.0, weight) < kSmallest)
    found.push_back({cat("learning rate ", lr,
                         ": steps are smaller than float32 can add to any "
                         "usual weight, so nothing is learnt"),
                     "a larger one:  --lr 1e-3"});
}

void look_at_clips(const Recipe& r, Found& found) {
  for (const auto& [flag, value, what] :
       {std::tuple{"--clip", r.clip_norm, "the norm of all gradients together"},
        std::tuple{"--clip-value", r.clip_value, "every gradient"}})
    if (value > 0 && value < kClip)
      found.push_back({cat(flag, " ", value, " cuts ", what,
                           " down to that, far below any usual gradient: with sgd a step moves a "
                           "weight by at most ",
                           value * default_lr(r.optimizer)),
                       cat("usual is 1:  ", flag, " 1")});
}

void look_at_dropout(const Recipe& r, const Model& m, Found& found) {
  if (r.mode != "train") return;
  for (const Node& n : m.main.nodes) {
    if (!n.is("Dropout")) continue;
    double ratio = n.version < 12 ? n.f("ratio", 0.5f) : 0.5;
    if (n.version >= 12 && n.inputs.size() > 1 && n.inputs[1] != kNone) {
      const Tensor& t = m.main.value(n.inputs[1]).constant;
      if (!t.defined() || t.size() != 1) continue;
      ratio = t.to_doubles()[0];
    }
    if (ratio > kDropout)
      found.push_back({cat("Dropout '", n.label(), "' takes away ", 100 * ratio,
                           " % of its values in training: what is behind it hardly learns"),
                       "change its ratio in the model; usual is 0.1 to 0.5"});
  }
}

}  // namespace

std::vector<OddSetting> odd_settings(const Recipe& r, const Model& m) {
  Found found;
  look_at_losses(r, found);
  if (const Optimizer* record = all_ops().optimizer(r.optimizer.kind)) {
    look_at_averages(r.optimizer, *record, settings_of(r.optimizer), found);
    look_at_decay(r.optimizer, *record, found);
  }
  look_at_lr(r, found);
  look_at_clips(r, found);
  look_at_dropout(r, m, found);
  return found;
}

OddSetting odd_schedule(const Recipe& r, int64_t updates) {
  constexpr int64_t kPoints = 1000, kFewest = 10;
  const ScheduleSpec& s = r.schedule;
  scheduled_lr(r, 0);  // refuses numbers that do not go together
  const auto number = [&](const char* key) {
    auto it = s.numbers.find(key);
    return it == s.numbers.end() ? 0.0 : it->second;
  };
  const std::string of = cat(with_commas(updates), updates == 1 ? " update" : " updates");
  if (number("warmup_steps") >= double(updates))
    return {cat("the warm-up takes ", number("warmup_steps"), " updates and the training has ", of,
                ": it ends before the learning rate is reached"),
            cat("fewer:  --schedule-arg warmup_steps=", updates / 10)};
  double first_change = 0;
  if (s.kind == "step") first_change = number("step_size");
  if (s.kind == "multistep" && !s.milestones.empty())
    first_change = double(*std::min_element(s.milestones.begin(), s.milestones.end()));
  if (first_change >= double(updates))
    return {cat("the schedule ", s.kind, " changes the learning rate after ", first_change,
                " updates for the first time and the training has ", of, ": it has no effect"),
            "schedules count updates, not epochs: fewer, or --schedule constant"};
  if (number("warmup_start") > 1)
    return {cat("warmup_start ", number("warmup_start"), ": the warm-up begins above the learning ",
                "rate, at ", scheduled_lr(r, 0)),
            "a share of the learning rate from 0 to 1:  --schedule-arg warmup_start=0"};
  if (s.kind == "constant") return {};
  double top = 0;
  int64_t ended = updates;
  for (int64_t k = 0; k < kPoints; ++k) {
    const int64_t at = k * (updates - 1) / (kPoints - 1);
    const double lr = scheduled_lr(r, at);
    top = std::max(top, lr);
    ended = lr > kEnded * top ? updates : std::min(ended, at);
  }
  const double given = default_lr(r.optimizer);
  if (s.kind != "onecycle" && top > kRaised * given)
    return {cat("the schedule ", s.kind, " raises the learning rate, from ", given, " to ", top),
            "schedules lower it: gamma and end_factor below 1, min_lr below the learning rate"};
  if (updates < kFewest || 10 * ended > 9 * updates) return {};
  return {
      cat("the schedule ", s.kind, " has brought the learning rate down to a hundred-thousandth ",
          "after ", with_commas(ended), " of ", of, ": nothing is learnt in the others"),
      s.kind == "exponential"
          ? cat("gamma counts for every update, not every epoch:  --schedule-arg gamma=",
                std::round(1e6 * std::pow(0.01, 1 / double(updates))) / 1e6)
          : std::string("leave total_steps out, or choose another schedule:  --schedule cosine")};
}

}  // namespace onnxtrain
