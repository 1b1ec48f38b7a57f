// Starting points of a training.
#include "cli/train_start.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "convert/optimizers.hpp"
#include "convert/schedules.hpp"
#include "core/shell.hpp"
#include "onnx/onnx.hpp"

namespace onnxtrain::cli {

namespace {

constexpr const char* kTotal = "onnxtrain.total_steps";  // metadata: what the schedule spans
constexpr const char* kRate = "onnxtrain.lr";            // metadata: what the schedule starts from
constexpr const char* kMade = "onnxtrain.prepared";      // metadata: training made by `train`

std::string base_rate(const Recipe& r) {
  char text[40];
  auto [end, bad] = std::to_chars(text, text + sizeof text, default_rate(r.optimizer));
  return {text, end};
}

Model make(const TrainFlags& f, const Model& plain, uint64_t seed, int64_t steps) {
  Recipe r = f.recipe.recipe(seed, steps);
  Model m = prepare(plain, r, all_ops());
  m.metadata[kMade] = "train";
  m.metadata[kRate] = base_rate(r);
  if (r.schedule.numbers.count("total_steps"))
    m.metadata[kTotal] = std::to_string(int64_t(r.schedule.numbers["total_steps"]));
  return m;
}

bool spans_the_run(const TrainFlags& f) {
  for (const std::string& s : f.recipe.schedule_numbers)
    if (s.starts_with("total_steps=")) return false;
  const std::string& kind = f.recipe.schedule;
  return kind == "cosine" || kind == "linear" || kind == "onecycle" || kind == "polynomial";
}

Start resume_from(const TrainFlags& f) {
  Start s;
  s.folder = f.resume;
  std::string path = f.resume;
  if (std::filesystem::is_directory(path))
    path = checkpoint_of(f.resume, "last");
  else
    s.folder.clear();
  s.model = std::make_shared<const Model>(load_checkpoint(path, s.at));
  // by flags that are known: those in the run's config.toml
  s.prepared = s.model->metadata.count(kMade) != 0 && !run_of(f.resume).empty();
  s.name = std::filesystem::path(f.resume).stem().stem().string();
  return s;
}

}  // namespace

std::string run_of(const std::string& resume) {
  namespace fs = std::filesystem;
  fs::path folder = resume;
  if (!fs::is_directory(folder)) {
    if (fs::absolute(folder).parent_path().filename() != "checkpoints") return {};
    folder = fs::absolute(folder).parent_path().parent_path();
  }
  return fs::exists(RunFolder(folder.string()).config()) ? folder.string() : std::string();
}

void refuse_changes(const Settings& settings, const Start& s, const std::string& resume) {
  std::vector<const char*> names = {"loss",       "optimizer",       "weight-decay", "momentum",
                                    "clip",       "clip-value",      "freeze",       "only",
                                    "accumulate", "label-smoothing", "ignore-index", "label",
                                    "loss-input", "as-is",           "bn-variance",  "reset",
                                    "seed"};
  if (!s.prepared) names.insert(names.end(), {"schedule", "schedule-arg"});
  for (const char* name : names)
    if (settings.changes(name))
      usage_error("OT0004",
                  cat("'", resume, "' goes on with the training it began with: --", name,
                      ", which describes another one, does not apply"),
                  cat("remove it, or begin a new run from what was learnt:  onnxtrain export ",
                      shell_word(resume), " -o plain.onnx"));
}

Start start(const TrainFlags& f) {
  if (!f.resume.empty()) return resume_from(f);
  Start s;
  s.at.seed = f.seed;
  s.name = std::filesystem::path(f.model).stem().string();
  if (size_t dot = s.name.find(".train"); dot != std::string::npos) s.name.resize(dot);
  Model m = load_model(f.model, all_ops());
  if (!m.training.empty()) {
    if (std::string flag = f.recipe.first_given(); !flag.empty())
      usage_error("OT0004",
                  cat("'", f.model, "' carries its own training: ", flag,
                      ", which describes another one, does not apply"),
                  cat("remove it, or take the inference part first:  onnxtrain export ",
                      shell_word(f.model), " -o plain.onnx"));
    s.model = std::make_shared<const Model>(is_checkpoint(m) ? load_checkpoint(f.model, s.at)
                                                             : std::move(m));
    return s;
  }
  if (f.recipe.loss == "auto") {
    LossChoice c = choose_loss(m, f.recipe.output);
    say("loss", cat(c.kind, ", because ", c.because, "   (--loss to change)"));
  } else {
    say("loss", f.recipe.loss);
  }
  // any length will do until the data has been counted
  s.model =
      std::make_shared<const Model>(make(f, m, f.seed, spans_the_run(f) ? int64_t(1) << 20 : 0));
  s.prepared = true;
  say_opened(m, *s.model);
  return s;
}

std::string starting_rate(const Start& s, Training& t) {
  auto it = s.model->metadata.find(kRate);
  return s.prepared && it != s.model->metadata.end() ? it->second : cat(float(t.rate()));
}

bool rate_is_scheduled(const Model& m) {
  auto rate = m.metadata.find("onnxtrain.rate");
  if (rate == m.metadata.end()) return false;
  for (const TrainingStep& s : m.training)
    for (const auto& [key, value] : s.update_binding)
      if (key == rate->second) return true;
  return false;
}

bool fit_schedule(const TrainFlags& f, Start& s, int64_t steps, bool new_rate, bool new_schedule) {
  if (!s.prepared) return false;
  bool spans = spans_the_run(f);
  int64_t updates = spans ? std::max<int64_t>(1, steps / f.recipe.accumulate) : 0;
  Recipe r = f.recipe.recipe(s.at.seed, updates);
  auto says = [&](const char* key, const std::string& value) {
    auto it = s.model->metadata.find(key);
    return it != s.model->metadata.end() && it->second == value;
  };
  bool other_length = spans && !says(kTotal, std::to_string(updates));
  bool other_rate = new_rate && rate_is_scheduled(*s.model) && !says(kRate, base_rate(r));
  if (!other_length && !other_rate && !new_schedule) return false;
  Model plain = *s.model;
  plain.training.clear();
  strip_checkpoint_metadata(plain);
  Model m = make(f, plain, s.at.seed, updates);
  for (const std::string& name : s.model->state_names())
    if (m.initializer(name)) m.set_initializer(name, *s.model->initializer(name));
  if (s.at.step > 0 && other_rate)
    say("schedule", cat(f.recipe.schedule, " from lr ", default_rate(r.optimizer), " now"));
  if (s.at.step > 0 && new_schedule && !other_length && !other_rate)
    say("schedule", cat(f.recipe.schedule, " now"));
  if (s.at.step > 0 && other_length)
    say("schedule", cat(f.recipe.schedule, " over ", with_commas(updates), " updates now"));
  const std::string& rate = m.metadata.at("onnxtrain.rate");
  double next = scheduled_rate(r, int64_t(s.at.step) / f.recipe.accumulate);
  Tensor value(m.initializer(rate)->dtype(), m.initializer(rate)->shape());
  if (value.dtype() == DType::kDouble)
    *value.as<double>() = next;
  else
    *value.as<float>() = float(next);
  m.set_initializer(rate, value);
  s.model = std::make_shared<const Model>(std::move(m));
  return true;
}

void check_log(const RunFolder& folder, const Position& at) {
  int64_t logged = folder.logged_epochs();
  if (logged <= at.epoch + 1) return;
  throw Error(
      ErrorKind::kCheckpoint, "OT4204",
      cat("'", folder.last(), "' stands at epoch ", at.epoch, ", but the log of '", folder.path(),
          "' goes up to epoch ", logged, ": the checkpoint is not the last one of this run"),
      cat("go on from it in another folder:  onnxtrain train --resume ", shell_word(folder.path()),
          " --out runs/other"));
}

}  // namespace onnxtrain::cli
