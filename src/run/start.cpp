// Starting points of a training.
#include "run/start.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

#include "convert/analysis/bad_values.hpp"
#include "convert/step/augment.hpp"
#include "convert/step/names.hpp"
#include "convert/step/odd_settings.hpp"
#include "convert/step/optimizers.hpp"
#include "convert/step/schedules.hpp"
#include "core/shell.hpp"
#include "core/text.hpp"
#include "data/columns/dataset.hpp"
#include "model/batch.hpp"
#include "onnx/onnx.hpp"
#include "run/data/target_check.hpp"

namespace onnxtrain::run {

namespace {

namespace fs = std::filesystem;

constexpr const char* kTotal = "onnxtrain.total_steps";  // metadata: what the schedule spans
constexpr const char* kLr = "onnxtrain.lr";              // metadata: what the schedule starts from
constexpr const char* kMade = "onnxtrain.prepared";      // metadata: training made by `train`

std::string base_lr(const Recipe& r) {
  char text[40];
  auto [end, bad] = std::to_chars(text, text + sizeof text, default_lr(r.optimizer));
  return {text, end};
}

bool says(const Model& m, const char* key, const std::string& value) {
  auto it = m.metadata.find(key);
  return it != m.metadata.end() && it->second == value;
}

using Notes = std::vector<std::pair<std::string, std::string>>;

void note_choice(const LossChoice& c, Notes& notes) {
  notes.emplace_back("loss", cat(c.kind, ", because ", c.because, "   (--loss to change)"));
}

Model prepare_noting(const Model& m, const Recipe& r, Decisions& decided, Notes& notes) {
  Model out = prepare(m, r, all_ops(), &decided);
  for (const LossChoice& c : decided.losses) note_choice(c, notes);
  if (decided.losses.empty() && !r.losses.empty()) {
    const std::string kind = loss_kind(out), &asked = r.losses[0].kind;
    notes.emplace_back("loss", kind.empty() || kind == asked
                                   ? asked
                                   : cat(kind, " on the scores before the activation, the same as ",
                                         asked, " on the output"));
  }
  if (!r.augment.empty())
    notes.emplace_back("augment", cat(augment_text(r.augment),
                                      ", new in every step, in training only   (--augment)"));
  const int64_t was = fixed_batch(m.main);
  if (was > 0 && fixed_batch(out.main) == 0)
    notes.emplace_back("batch", cat("the file was made for ", was, was == 1 ? " row" : " rows",
                                    " at a time; any number now"));
  check_loss(out);
  return out;
}

}  // namespace

Model prepare_told(const Model& m, const Recipe& r, Observer& observer) {
  Decisions decided;
  Notes notes;
  if (!m.training.empty() && !r.append)
    observer.on_warning("OT3115",
                        "the file carries a training already: it is replaced, with its optimizer "
                        "and state",
                        "to go on with it:  onnxtrain train MODEL --data DATA");
  Model out = prepare_noting(m, r, decided, notes);
  for (const auto& [label, text] : notes)
    if (label != "loss" || !decided.losses.empty()) observer.on_note(label, text);
  for (const LeftOut& l : decided.left_out) observer.on_warning("OT1285", l.text, l.hint);
  for (const OddSetting& o : decided.settings) observer.on_warning("OT3130", o.text, o.hint);
  return out;
}

Start start_from_model(const std::string& path, uint64_t seed, const RecipeMaker& recipe,
                       const std::string& recipe_flag, const ModelChange& change) {
  Start s;
  s.at.seed = seed;
  s.name = fs::path(path).stem().string();
  if (size_t dot = s.name.find(".train"); dot != std::string::npos) s.name.resize(dot);
  Model m = load_model_or_checkpoint(path, s.at);
  if (!m.training.empty()) {
    if (!recipe_flag.empty())
      usage_error("OT0004",
                  cat("'", path, "' carries its own training: ", recipe_flag,
                      ", which describes another one, does not apply"),
                  cat("remove it, or take the inference part first:  onnxtrain export ",
                      shell_word(path), " -o plain.onnx"));
    if (change) m = change(std::move(m));  // refuses: preprocessing comes before a training
    check_state_values(m);
    s.model = std::make_shared<Model>(std::move(m));
    return s;
  }
  Recipe r = recipe();
  check_recipe(r);
  s.plain = std::make_shared<const Model>(change ? change(std::move(m)) : std::move(m));
  prepare_again(s, std::move(r));
  return s;
}

LossTerm& first_loss(Recipe& r) {
  if (r.losses.empty()) r.losses.emplace_back();
  return r.losses.front();
}

Model prepare_for(const Model& m, Recipe r, const Tensor& target) {
  Decisions decided;
  Model out = prepare(m, r, all_ops(), &decided);
  if (decided.losses.size() != 1) return out;
  const Tensor numbers = Tensor::vector(target.to_doubles());  // as the loss of numbers reads it
  const Dataset data = Dataset::from_tensors({{"y", numbers}});
  const TargetFacts facts = target_facts(data, "y", *data.column("y"));
  const LossChoice better = better_choice(out, decided.losses[0], facts);
  if (better.kind.empty()) return out;
  first_loss(r).kind = better.kind;
  return prepare(m, r, all_ops());
}

void note_loss(Start& s, const LossChoice& choice) {
  std::erase_if(s.notes, [](const auto& note) { return note.first == "loss"; });
  note_choice(choice, s.notes);
}

void prepare_again(Start& s, Recipe r, const ModelChange& change) {
  if (change) s.plain = std::make_shared<const Model>(change(*s.plain));
  r.schedule = {};
  Decisions decided;
  s.notes.clear();
  s.model = std::make_shared<Model>(prepare_noting(*s.plain, r, decided, s.notes));
  s.chosen = std::move(decided.losses);
  s.left_out = std::move(decided.left_out);
  s.settings = std::move(decided.settings);
  s.prepared = true;
  s.model->metadata[kMade] = "train";
}

void choose_loss_again(Start& s, Recipe r, const LossChoice& better) {
  first_loss(r).kind = better.kind;
  const Notes notes = s.notes;
  prepare_again(s, std::move(r));
  s.notes = notes;
  note_loss(s, better);
}

Start start_from_run(const std::string& path) {
  Start s;
  s.resumed = true;
  std::string file = path;
  if (fs::is_directory(path)) {
    s.folder = path;
    Folder(path).require_last();
    file = Folder(path).last();
  }
  s.model = std::make_shared<Model>(load_checkpoint(file, s.at));
  // by settings that are known: those in the run's config.toml, or in the checkpoint
  s.prepared = s.model->metadata.count(kMade) != 0 &&
               (!run_of(path).empty() || s.model->metadata.count("onnxtrain.settings") != 0);
  s.name = fs::path(path).stem().stem().string();
  return s;
}

void fit_schedule(Start& s, Recipe r, int64_t steps, bool new_lr, bool new_schedule,
                  Observer& observer) {
  const int64_t updates = std::max<int64_t>(1, steps / r.accumulate);
  const bool spans = spans_the_run(r.schedule), first = !s.resumed;
  if (spans) r.schedule.numbers["total_steps"] = double(updates);
  const bool other_length = spans && !says(*s.model, kTotal, std::to_string(updates));
  const bool other_lr = new_lr && lr_is_scheduled(*s.model) && !says(*s.model, kLr, base_lr(r));
  if (!first && !other_length && !other_lr && !new_schedule) return;
  const std::string& kind = r.schedule.kind;
  if (s.at.step > 0 && other_lr)
    observer.on_note("schedule", cat(kind, " from lr ", default_lr(r.optimizer), " now"));
  if (s.at.step > 0 && new_schedule && !other_length && !other_lr)
    observer.on_note("schedule", kind + " now");
  if (s.at.step > 0 && other_length)
    observer.on_note("schedule", cat(kind, " over ", with_commas(updates), " updates now"));
  const auto total = r.schedule.numbers.find("total_steps");
  if (const OddSetting odd = odd_schedule(r, updates); !odd.text.empty())
    observer.on_warning("OT3128", odd.text, odd.hint);
  else if (total != r.schedule.numbers.end() && total->second < double(updates))
    observer.on_warning("OT3128",
                        cat("the schedule ", kind, " ends after ", total->second,
                            " updates, the training has ", with_commas(updates)),
                        "leave total_steps out: the schedule spans the run by itself");
  set_schedule(*s.model, r, int64_t(s.at.step) / r.accumulate, all_ops());
  s.model->metadata[kLr] = base_lr(r);
  s.model->metadata.erase(kTotal);
  if (auto it = r.schedule.numbers.find("total_steps"); it != r.schedule.numbers.end())
    s.model->metadata[kTotal] = std::to_string(int64_t(it->second));
}

std::string starting_lr(const Training& t, bool prepared) {
  const auto& metadata = t.source().metadata;
  auto it = metadata.find(kLr);
  return prepared && it != metadata.end() ? it->second : cat(float(t.lr()));
}

bool lr_is_scheduled(const Model& m) {
  auto lr = m.metadata.find("onnxtrain.rate");
  if (lr == m.metadata.end()) return false;
  for (const TrainingStep& s : m.training)
    for (const auto& [key, value] : s.update_binding)
      if (key == lr->second) return true;
  return false;
}

std::string run_of(const std::string& resume) {
  fs::path folder = resume;
  if (!fs::is_directory(folder)) {
    if (fs::absolute(folder).parent_path().filename() != "checkpoints") return {};
    folder = fs::absolute(folder).parent_path().parent_path();
  }
  return fs::exists(Folder(folder.string()).config()) ? folder.string() : std::string();
}

namespace {

// What a run keeps from its beginning.
std::vector<std::string> fixed_settings(const Start& s) {
  std::vector<std::string> names = {
      "loss",         "optimizer",  "optimizer-arg", "weight-decay",
      "momentum",     "clip",       "clip-value",    "freeze",
      "only",         "accumulate", "label",         "label-smoothing",
      "ignore-index", "as-is",      "bn-variance",   "class-weights",
      "loss-input",   "reset",      "seed",          "strict",
      "augment",      "preprocess", "impute",        "one-hot",
      "embed",        "resize",     "drop",          "text",
      "tokenizer",    "max-length"};
  if (!s.prepared) names.insert(names.end(), {"schedule", "schedule-arg"});
  return names;
}

// A checkpoint that was copied from the folder of another run.
void refuse_other_model(const std::map<std::string, std::string>& saved, const std::string& config,
                        const std::string& run) {
  const auto now = settings_in(config);
  const auto a = saved.find("model"), b = now.find("model");
  if (a == saved.end() || b == now.end()) return;
  const fs::path began = unquoted(a->second), named = unquoted(b->second);
  if (began.empty() || named.empty() || began.filename() == named.filename()) return;
  const std::string file = Folder(run).last();
  throw Error(
      ErrorKind::kCheckpoint, "OT4204",
      cat("'", file, "' belongs to another run: it was trained from '", began.string(), "', and '",
          config, "' names '", named.string(), "'"),
      cat("resume it in a folder of its own:  cp ", shell_word(file),
          " other.train.onnx && onnxtrain train --resume other.train.onnx --out runs/other"));
}

}  // namespace

void compare_with_checkpoint(const Settings& settings, const Start& s, const std::string& resume,
                             Observer& observer) {
  const auto text = s.model->metadata.find("onnxtrain.settings");
  const std::string run = run_of(resume);
  if (text == s.model->metadata.end() || run.empty()) return;
  const std::string config = Folder(run).config();
  refuse_other_model(settings_in_text(text->second, "the checkpoint"), config, run);
  const std::vector<std::string> fixed = fixed_settings(s);
  const std::set<std::string> free = {
      "epochs",          "steps",        "time",          "patience",
      "save-every",      "keep",         "data",          "valid",
      "model",           "fallback",     "custom-ops",    "distributed",
      "engine",          "overfit",      "fault-timeout", "max-loop-trips",
      "engine-isolated", "micro-blocks", "batch-norm",    "reduce-dtype"};
  for (const Settings::Edited& e : settings.edited_since(text->second, "the checkpoint")) {
    if (std::find(fixed.begin(), fixed.end(), e.name) != fixed.end())
      usage_error("OT0004",
                  cat("'", config, "' says ", e.name, " = ", e.now, "; the run began with ",
                      e.before.empty() ? "none" : e.before, ", and a training cannot change it"),
                  cat("write it back, or remove the file: the checkpoint knows the settings:  rm ",
                      shell_word(config)));
    if (free.count(e.name) == 0)
      observer.on_note("settings", cat("'", config, "' was changed since the checkpoint: ", e.name,
                                       " = ", e.now, ", it was ", e.before));
  }
}

bool was_edited(const Settings& settings, const Start& s, const std::string& name) {
  const auto text = s.model->metadata.find("onnxtrain.settings");
  if (!s.resumed || text == s.model->metadata.end()) return false;
  const auto edits = settings.edited_since(text->second, "the checkpoint");
  return std::any_of(edits.begin(), edits.end(), [&](const auto& e) { return e.name == name; });
}

void refuse_changes(const Settings& settings, const Start& s, const std::string& resume) {
  for (const std::string& name : fixed_settings(s))
    if (settings.changes(name))
      usage_error("OT0004",
                  cat("'", resume, "' resumes the training it began with: --", name,
                      ", which describes another one, does not apply"),
                  cat("remove it, or begin a new run from what was learnt:  onnxtrain export ",
                      shell_word(resume), " -o plain.onnx"));
}

void check_log(const Folder& folder, const Position& at) {
  int64_t logged = folder.logged_epochs();
  if (logged <= at.epoch + 1) return;
  throw Error(
      ErrorKind::kCheckpoint, "OT4204",
      cat("'", folder.last(), "' stands at epoch ", at.epoch, ", but the log of '", folder.path(),
          "' goes up to epoch ", logged, ": the checkpoint is not the last one of this run"),
      cat("resume from it in another folder:  onnxtrain train --resume ", shell_word(folder.path()),
          " --out runs/other"));
}

std::string checkpoint_of(const std::string& path, const std::string& which, Observer& observer) {
  if (!fs::is_directory(path)) return path;
  const Folder run(path);
  if (which != "last" && fs::exists(run.best())) return run.best();
  run.require_last();
  if (which != "last")
    observer.on_note("note", cat(run.best(), " is not there: the last checkpoint is taken"));
  return run.last();
}

}  // namespace onnxtrain::run
