// Suggestions: words of other tools first, then the nearest spelling.
#include "cli/flags/flag_words.hpp"

#include <algorithm>
#include <cstring>

#include "core/closest.hpp"
#include "core/error.hpp"
#include "core/text.hpp"

namespace onnxtrain::cli {

namespace {

struct Word {
  const char* typed;
  const char* ours;  // several: the first that the command has
};

constexpr Word kOptions[] = {
    {"epoch", "epochs"},
    {"num-epochs", "epochs"},
    {"n-epochs", "epochs"},
    {"nb-epochs", "epochs"},
    {"max-epochs", "epochs"},
    {"num-train-epochs", "epochs"},
    {"max-steps", "steps"},
    {"num-steps", "steps"},
    {"iterations", "steps"},
    {"iters", "steps"},
    {"max-time", "time"},
    {"timeout", "time"},
    {"batchsize", "batch"},
    {"bs", "batch"},
    {"mini-batch", "batch"},
    {"train-batch-size", "batch"},
    {"per-device-train-batch-size", "batch"},
    {"rate", "lr"},
    {"learningrate", "lr"},
    {"lr-schedule", "schedule"},
    {"lr-scheduler", "schedule"},
    {"lr-scheduler-type", "schedule"},
    {"scheduler", "schedule"},
    {"warmup", "schedule-arg"},
    {"warmup-steps", "schedule-arg"},
    {"opt", "optimizer"},
    {"optim", "optimizer"},
    {"optimiser", "optimizer"},
    {"criterion", "loss"},
    {"loss-fn", "loss"},
    {"loss-function", "loss"},
    {"objective", "loss"},
    {"wd", "weight-decay"},
    {"l2", "weight-decay"},
    {"grad-clip", "clip"},
    {"clip-norm", "clip"},
    {"clip-grad-norm", "clip"},
    {"max-grad-norm", "clip"},
    {"gradient-clip-val", "clip"},
    {"grad-accum", "accumulate"},
    {"gradient-accumulation-steps", "accumulate"},
    {"early-stopping", "patience"},
    {"early-stop", "patience"},
    {"val", "valid"},
    {"validation", "valid"},
    {"val-split", "valid"},
    {"validation-split", "valid"},
    {"val-data", "valid"},
    {"valid-data", "valid"},
    {"test-size", "valid"},
    {"test", "valid"},
    {"test-data", "valid"},
    {"eval-data", "valid"},
    {"features", "drop"},
    {"columns", "drop"},
    {"dataset", "data"},
    {"data-dir", "data"},
    {"train-data", "data"},
    {"train", "data"},
    {"csv", "data"},
    {"input", "inputs data"},
    {"in", "inputs data"},
    {"feeds", "inputs data"},
    {"label-column", "target"},
    {"target-column", "target"},
    {"labels", "target"},
    {"y", "target"},
    {"output-dir", "out output"},
    {"out-dir", "out output"},
    {"outdir", "out output"},
    {"save-dir", "out output"},
    {"save", "out output"},
    {"run-dir", "out"},
    {"output", "out"},
    {"output-file", "output out"},
    {"out", "output"},
    {"checkpoint", "resume which"},
    {"ckpt", "resume which"},
    {"continue", "resume"},
    {"resume-from-checkpoint", "resume"},
    {"restore", "resume"},
    {"random-state", "seed"},
    {"random-seed", "seed"},
    {"manual-seed", "seed"},
    {"num-threads", "threads"},
    {"nthreads", "threads"},
    {"n-jobs", "threads"},
    {"jobs", "threads"},
    {"max-memory", "memory"},
    {"mem", "memory"},
    {"memory-limit", "memory"},
    {"max-iterations", "max-loop-trips steps"},
    {"normalize", "scale"},
    {"normalise", "scale"},
    {"freeze-layers", "freeze"},
    {"params", "only wrt"},
    {"with-respect-to", "wrt"},
    {"layers", "ops"},
    {"operators", "ops"},
    {"names", "tensors"},
    {"weights", "tensors"},
    {"format", "json"},
    {"silent", "quiet"},
    {"no-progress", "progress"},
    {"log-level", "verbose"},
    {"debug", "verbose"},
    {"dryrun", "dry-run"},
    {"lr-find", "find-lr"},
    {"lr-finder", "find-lr"},
};

// Single letters of other tools.
constexpr Word kShort[] = {{"o", "out"},     {"d", "data"},   {"e", "epochs"}, {"b", "batch"},
                           {"l", "lr"},      {"m", "metric"}, {"s", "seed"},   {"t", "threads"},
                           {"i", "inputs"},  {"r", "resume"}, {"c", "config"}, {"y", "target"},
                           {"j", "threads"}, {"n", "epochs"}};

// Options that other trainers need and this one does not.
constexpr Word kNeedless[] = {
    {"device", "it runs on the CPU; leave the option out"},
    {"gpu", "it runs on the CPU; leave the option out"},
    {"gpus", "it runs on the CPU; leave the option out"},
    {"cuda", "it runs on the CPU; leave the option out"},
    {"fp16", "it computes in the types that the model has; leave the option out"},
    {"bf16", "it computes in the types that the model has; leave the option out"},
    {"amp", "it computes in the types that the model has; leave the option out"},
    {"workers", "data is read ahead by itself; leave the option out"},
    {"num-workers", "data is read ahead by itself; leave the option out"},
    {"model", "the model stands without an option in front"},
    {"metrics", "metrics follow from the loss; --metric says which one decides the best epoch"},
    {"shuffle", "rows are shuffled unless --no-shuffle says otherwise; leave the option out"},
};

constexpr Word kCommands[] = {
    {"fit", "train"},     {"finetune", "train"}, {"fine-tune", "train"},   {"learn", "train"},
    {"evaluate", "eval"}, {"test", "eval"},      {"score", "eval"},        {"validate", "check"},
    {"verify", "check"},  {"lint", "check"},     {"infer", "predict"},     {"inference", "predict"},
    {"show", "info"},     {"inspect", "info"},   {"summary", "info"},      {"describe", "info"},
    {"gradient", "grad"}, {"gradients", "grad"}, {"backward", "grad"},     {"benchmark", "bench"},
    {"profile", "bench"}, {"compare", "diff"},   {"save", "export"},       {"list", "runs"},
    {"ls", "runs"},       {"resume", "train"},   {"compile", "prepare"},   {"init", "prepare"},
    {"ops", "operators"}, {"help", "--help"},    {"version", "--version"},
};

std::string dashes_off(std::string s) {
  s.erase(0, s.find_first_not_of('-'));
  std::replace(s.begin(), s.end(), '_', '-');
  return s.substr(0, s.find('='));
}

}  // namespace

std::string option_named(const CLI::App& command, const std::string& typed) {
  const std::string hint = option_hint(command, "--" + typed), mean = "did you mean --";
  return hint.starts_with(mean) ? hint.substr(mean.size(), hint.size() - mean.size() - 1)
                                : std::string();
}

std::string option_hint(const CLI::App& command, const std::string& typed) {
  std::vector<std::string> names;
  for (const CLI::Option* o : command.get_options())
    for (const std::string& name : o->get_lnames()) names.push_back(name);
  auto has = [&](const std::string& n) {
    return std::find(names.begin(), names.end(), n) != names.end();
  };
  const std::string word = dashes_off(typed);
  for (const Word& w : kShort)
    if (word == w.typed && !typed.starts_with("--"))
      if (has(w.ours)) return cat("did you mean --", w.ours, "?");
  if (has(word)) return cat("did you mean --", word, "?");  // --batch_size
  for (const Word& w : kOptions) {
    if (word != w.typed) continue;
    std::string ours = w.ours;
    for (size_t at = 0; at <= ours.size();) {
      const size_t end = std::min(ours.find(' ', at), ours.size());
      if (const std::string one = ours.substr(at, end - at); has(one))
        return cat("did you mean --", one, "?");
      at = end + 1;
    }
  }
  for (const Word& w : kNeedless)
    if (word == w.typed) return w.ours;
  const std::string near = closest(word, names);
  return near.empty() ? near : cat("did you mean --", near, "?");
}

std::string command_hint(const CLI::App& app, const std::string& typed) {
  for (const Word& w : kCommands)
    if (typed == w.typed)
      return w.ours[0] == '-' ? cat("onnxtrain ", w.ours) : cat("did you mean ", w.ours, "?");
  std::vector<std::string> names;
  for (const CLI::App* c : app.get_subcommands({})) names.push_back(c->get_name());
  const std::string near = closest(typed, names);
  return near.empty() ? near : cat("did you mean ", near, "?");
}

}  // namespace onnxtrain::cli
