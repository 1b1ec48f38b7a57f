// The words of a recipe and the check of their values.
#include "convert/step/names.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <map>

#include "convert/step/augment.hpp"
#include "convert/step/optimizers.hpp"
#include "core/text.hpp"

namespace onnxtrain {

namespace {

bool matches(const char* p, const char* s) {
  for (; *p; ++p, ++s) {
    if (*p == '*') {
      while (*p == '*') ++p;
      if (!*p) return true;
      for (; *s; ++s)
        if (matches(p, s)) return true;
      return false;
    }
    if (!*s) return false;
    if (*p == '?') continue;
    if (*p == '[') {
      const char* q = p + 1;
      bool negate = *q == '!', hit = false;
      if (negate) ++q;
      const char* first = q;
      for (; *q && (*q != ']' || q == first); ++q) {
        if (q[1] == '-' && q[2] && q[2] != ']') {
          hit |= *q <= *s && *s <= q[2];
          q += 2;
        } else {
          hit |= *q == *s;
        }
      }
      if (!*q) {  // no closing bracket: an ordinary character
        if (*p != *s) return false;
        continue;
      }
      if (hit == negate) return false;
      p = q;
      continue;
    }
    if (*p != *s) return false;
  }
  return !*s;
}

void need_kind(const char* what, const std::string& kind, const std::vector<std::string>& known,
               bool path) {
  if (std::find(known.begin(), known.end(), kind) != known.end() || (path && is_onnx_path(kind)))
    return;
  usage_error("OT1232", cat("there is no ", what, " '", kind, "'"), suggestion(kind, known));
}

void need(bool ok, const char* key, double value, const char* range) {
  if (!ok)
    usage_error("OT1233", cat(key, " is ", value, ", it must be ", range),
                cat("choose a number that is ", range));
}

}  // namespace

namespace {

// "CrossEntropyLoss" -> "crossentropy": letters and digits, without what libraries append
std::string plain(const std::string& word) {
  std::string out;
  for (char c : word)
    if (std::isalnum(static_cast<unsigned char>(c)))
      out += char(std::tolower(static_cast<unsigned char>(c)));
  for (const char* end : {"loss", "lr", "optimizer"})
    if (out.size() > std::strlen(end) + 1 && out.ends_with(end))
      out.resize(out.size() - std::strlen(end));
  return out;
}

// Names that other libraries have for the same thing.
std::string other_name(const std::string& word) {
  static const std::map<std::string, std::string> table = {
      {"categoricalcrossentropy", "cross_entropy"},
      {"sparsecategoricalcrossentropy", "cross_entropy"},
      {"softmaxcrossentropy", "cross_entropy"},
      {"softmax", "cross_entropy"},
      {"ce", "cross_entropy"},
      {"logloss", "cross_entropy"},
      {"meansquarederror", "mse"},
      {"l2", "mse"},
      {"rmse", "mse"},
      {"mae", "l1"},
      {"meanabsoluteerror", "l1"},
      {"smoothl1", "huber"},
      {"bcewithlogits", "bce_logits"},
      {"binarycrossentropy", "bce"},
      {"kldiv", "kl"},
      {"kldivergence", "kl"},
      {"negativeloglikelihood", "nll"},
      {"cosineannealing", "cosine"},
      {"onecycle", "onecycle"},
      {"poly", "polynomial"},
      {"none", "constant"},
      {"sgdm", "momentum"}};
  auto it = table.find(plain(word));
  return it == table.end() ? std::string() : it->second;
}

}  // namespace

std::string suggestion(const std::string& word, const std::vector<std::string>& known) {
  constexpr size_t kListed = 24;
  std::string best, all;
  size_t listed = 0;
  size_t distance = std::max<size_t>(2, word.size() / 3) + 2;
  if (const std::string other = other_name(word);
      std::find(known.begin(), known.end(), other) != known.end()) {
    best = other;
    distance = 0;
  }
  for (const auto& k : known) {
    size_t d = plain(word) == plain(k) ? 0 : 1 + edit_distance(word, k);
    if (d < distance) {
      distance = d;
      best = k;
    }
    if (++listed <= kListed) all += (all.empty() ? "" : ", ") + k;
  }
  if (listed > kListed) all += cat(", ... (", listed, " in all)");
  return best.empty() ? "known: " + all : "did you mean '" + best + "'?  known: " + all;
}

bool glob_match(const std::string& pattern, const std::string& name) {
  // a name may hold the characters of globs: "layers[0].weight"
  return pattern == name || matches(pattern.c_str(), name.c_str());
}

bool any_glob_matches(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const auto& p) { return glob_match(p, name); });
}

const std::vector<std::string>& loss_kinds() {
  static const std::vector<std::string> list = {"auto", "cross_entropy", "nll",   "mse",
                                                "l1",   "huber",         "bce",   "bce_logits",
                                                "kl",   "hinge",         "output"};
  return list;
}
const std::vector<std::string>& optimizer_kinds() {
  static const std::vector<std::string> list = [] {
    std::vector<std::string> kinds;
    for (const Optimizer* o : all_ops().optimizers()) kinds.emplace_back(o->kind);
    // the standard's own operators behind the others
    std::stable_partition(kinds.begin(), kinds.end(), [](const std::string& kind) {
      return all_ops().optimizer(kind)->attributes.empty();
    });
    return kinds;
  }();
  return list;
}
const OptimizerSetting* optimizer_setting(const std::string& kind, const std::string& name) {
  const Optimizer* own = all_ops().optimizer(kind);
  if (const OptimizerSetting* s = own ? own->setting(name) : nullptr) return s;
  for (const Optimizer* o : all_ops().optimizers())
    if (const OptimizerSetting* s = o->setting(name)) return s;
  return nullptr;
}
const std::vector<std::string>& schedule_kinds() {
  static const std::vector<std::string> list = {"constant", "step",   "multistep", "exponential",
                                                "cosine",   "linear", "onecycle",  "polynomial"};
  return list;
}
const std::vector<std::string>& schedule_numbers() {
  static const std::vector<std::string> list = {
      "step_size",        "gamma",       "total_steps",  "warmup_steps",
      "warmup_start",     "min_lr",      "max_lr",       "power",
      "start_factor",     "end_factor",  "pct_start",    "div_factor",
      "final_div_factor", "three_phase", "anneal_linear"};
  return list;
}

bool is_onnx_path(const std::string& kind) {
  return kind.size() > 5 && kind.compare(kind.size() - 5, 5, ".onnx") == 0;
}

namespace {

// What the recipe says must be settings of its own optimizer: those of another would have no
// effect.
void check_keys(const OptimizerSpec& o) {
  const Optimizer* record = all_ops().optimizer(o.kind);
  std::vector<std::string> known;
  if (record)
    for (const OptimizerSetting& s : record->settings) known.emplace_back(s.name);
  auto check = [&](const std::string& key) {
    if (std::find(known.begin(), known.end(), key) != known.end()) return;
    usage_error("OT1230", cat("the optimizer ", o.kind, " has no setting '", key, "'"),
                known.empty()
                    ? "a file that is an optimizer has its own numbers: remove the setting"
                    : suggestion(key, known));
  };
  for (const auto& [name, value] : o.settings) check(name);
  bool decays = o.weight_decay.has_value() || o.no_decay_on_bias_and_norm;
  for (const ParameterOverride& x : o.overrides) decays = decays || x.weight_decay.has_value();
  if (decays) check("weight_decay");
  if (!o.attributes.empty() && (!record || record->attributes.empty()))
    usage_error("OT1230", cat("the optimizer ", o.kind, " has no key 'attributes'"),
                "'attributes' belongs to onnx_adam, onnx_momentum and onnx_adagrad");
}

void check_settings(const OptimizerSpec& o) {
  check_keys(o);
  need(!o.lr || *o.lr >= 0, "lr", o.lr.value_or(0), "0 or more");
  need(!o.weight_decay || *o.weight_decay >= 0, "weight_decay", o.weight_decay.value_or(0),
       "0 or more");
  for (const auto& [name, value] : o.settings)
    if (const OptimizerSetting* s = optimizer_setting(o.kind, name))
      need(in_range(s->range, value), s->name, value, range_text(s->range));
  const Optimizer* record = all_ops().optimizer(o.kind);
  if (record && record->check) record->check(settings_of(o));
}

// Numbers that a schedule reads, beside warm-up and total_steps; those of another would have no
// effect.
std::vector<std::string> numbers_of_schedule(const std::string& kind) {
  static const std::map<std::string, std::vector<std::string>> own = {
      {"constant", {}},
      {"step", {"step_size", "gamma"}},
      {"multistep", {"gamma"}},
      {"exponential", {"gamma"}},
      {"cosine", {"min_lr"}},
      {"linear", {"start_factor", "end_factor", "min_lr"}},
      {"polynomial", {"min_lr", "power"}},
      {"onecycle",
       {"max_lr", "div_factor", "final_div_factor", "pct_start", "three_phase", "anneal_linear"}}};
  std::vector<std::string> all = own.at(kind);
  all.insert(all.end(), {"warmup_steps", "warmup_start", "total_steps"});
  return all;
}

void check_schedule(const ScheduleSpec& s) {
  need_kind("schedule", s.kind, schedule_kinds(), false);
  for (const auto& [key, value] : s.numbers)
    need_kind("number of a schedule", key, schedule_numbers(), false);
  for (const auto& [key, value] : s.numbers)
    need(value >= 0 && std::isfinite(value), key.c_str(), value, "0 or more");
  auto refuse = [&](const std::string& key) {
    std::string kinds;
    for (const std::string& kind : schedule_kinds()) {
      const std::vector<std::string> known = numbers_of_schedule(kind);
      if (std::find(known.begin(), known.end(), key) != known.end() ||
          (key == "milestones" && kind == "multistep"))
        kinds += cat(kinds.empty() ? "" : ", ", kind);
    }
    usage_error("OT1230",
                cat("the schedule ", s.kind, " has no number '", key, "': it would have no effect"),
                cat("leave it out, or choose a schedule that has it:  --schedule ",
                    kinds.substr(0, kinds.find(',')), "   (", kinds, ")"));
  };
  const std::vector<std::string> known = numbers_of_schedule(s.kind);
  for (const auto& [key, value] : s.numbers)
    if (std::find(known.begin(), known.end(), key) == known.end()) refuse(key);
  if (!s.milestones.empty() && s.kind != "multistep") refuse("milestones");
}

}  // namespace

std::string equal_weights(int64_t classes) {
  constexpr int64_t kMost = 20;
  std::string out = "1";
  for (int64_t k = 1; k < std::min(classes, kMost); ++k) out += ",1";
  return classes > kMost ? out + ",..." : out;
}

void check_recipe(const Recipe& r) {
  for (const LossTerm& t : r.losses) {
    need_kind("loss", t.kind, loss_kinds(), true);
    if (t.reduction != "mean" && t.reduction != "sum")
      usage_error("OT1232", cat("there is no reduction '", t.reduction, "'"),
                  suggestion(t.reduction, {"mean", "sum"}));
    need(t.label_smoothing >= 0 && t.label_smoothing < 1, "label_smoothing", t.label_smoothing,
         "in [0,1)");
    need(t.delta > 0, "delta", t.delta, "positive");
    bool classes = t.kind == "cross_entropy" || t.kind == "nll" || t.kind == "auto";
    if (!classes && (t.ignore_index || !t.class_weights.empty() || t.label_smoothing != 0))
      usage_error(
          "OT1234",
          cat("class weights, ignore_index and label smoothing belong to cross_entropy, not to ",
              t.kind),
          "--loss cross_entropy, or leave them out");
    if (t.kind == "nll" && t.label_smoothing != 0)
      usage_error("OT1234", "label smoothing belongs to cross_entropy, not to nll",
                  "use the loss cross_entropy");
  }
  if (!parse_augment(r.augment).empty() && r.mode == "as_is")
    usage_error("OT2211", "augment belongs to the training form, and the graph is taken as it is",
                "leave --as-is out");
  const OptimizerSpec& o = r.optimizer;
  need_kind("optimizer", o.kind, optimizer_kinds(), true);
  need_kind("style", o.style, {"torch", "keras"}, false);
  check_settings(o);
  check_schedule(r.schedule);
  const Optimizer* record = all_ops().optimizer(o.kind);
  if (record && r.schedule.kind != "constant" && !reads_lr(record->node(settings_of(o))))
    usage_error("OT1234",
                cat("the schedule ", r.schedule.kind, " has no effect: ", o.kind,
                    " reads the learning rate only before its first step"),
                "use the schedule constant, or another optimizer");
  need_kind("mode", r.mode, {"train", "as_is"}, false);
  need_kind("bn_variance", r.bn_variance, {"torch", "onnx"}, false);
  need(r.clip_norm >= 0 && std::isfinite(r.clip_norm), "clip_norm", r.clip_norm,
       "0 (off) or positive");
  need(r.clip_value >= 0 && std::isfinite(r.clip_value), "clip_value", r.clip_value,
       "0 (off) or positive");
  need(r.batch >= 0, "batch", double(r.batch), "0 (any) or positive");
  need(r.accumulate >= 1, "accumulate", r.accumulate, "1 or more");
}

}  // namespace onnxtrain
