// The course of a run.
#include "run/run.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include <nlohmann/json.hpp>

#include "convert/schedules.hpp"
#include "core/shell.hpp"
#include "model/batch.hpp"
#include "model/scores.hpp"
#include "run/moved.hpp"
#include "run/new_model.hpp"
#include "run/new_parts.hpp"
#include "run/report.hpp"
#include "run/target_check.hpp"
#include "run/whole_batches.hpp"

namespace onnxtrain::run {

namespace {

namespace fs = std::filesystem;

int64_t total_steps(const FitOptions& o, int64_t rows, bool whole) {
  const int64_t batches = (rows + (whole ? 0 : o.batch - 1)) / o.batch;
  int64_t steps = 0;
  if (__builtin_mul_overflow(batches, o.epochs, &steps) || steps > int64_t(1) << 53)
    usage_error("OT0003", cat("--epochs ", o.epochs, " is more than can ever be run"),
                "to train until it no longer helps:  --patience 5");
  return o.max_steps > 0 ? std::min(steps, o.max_steps) : steps;
}

// A word of the metadata that holds until the model is trained.
std::string taken(Model& m, const char* key) {
  const auto it = m.metadata.find(key);
  if (it == m.metadata.end()) return {};
  std::string value = it->second;
  m.metadata.erase(it);
  return value;
}

// The change that --preprocess asks for.
ModelChange preprocessing(const Request& q, Observer& observer) {
  if (!q.preprocess) return {};
  NewRequest n;
  n.data = q.data.data;
  n.target = q.data.target;
  n.drop = q.data.drop;
  n.encoding = q.data.encoding;
  n.separator = q.data.separator;
  n.preprocess = *q.preprocess;
  n.skip_bad = q.data.skip_bad;
  n.seed = q.seed;
  return [n, &observer](const Model& m) { return preprocessed(m, n, observer); };
}

// The data of a resumed run may have moved; synthetic data has no file.
void require_data(const std::string& resume, const DataRequest& q) {
  for (const auto& [flag, path] : {std::pair{"--data", q.data}, std::pair{"--valid", q.valid}}) {
    double fraction = 0;
    if (is_fraction(path, fraction) || path.starts_with("synthetic:") || fs::exists(path)) continue;
    if (path == "-" && isatty(STDIN_FILENO) == 0) continue;
    if (path == "-")
      data_error("OT4001",
                 cat("the data of the run '", resume,
                     "' came from standard input, and it is "
                     "a terminal now"),
                 cat("give the table again:  onnxtrain train --resume ", shell_word(resume), " ",
                     flag, " FILE.csv"));
    data_error("OT4001", cat("the data of the run '", resume, "', '", path, "', is not there"),
               cat("say where it is now:  onnxtrain train --resume ", shell_word(resume), " ", flag,
                   " ", shell_word(fs::path(path).filename().string())));
  }
}

}  // namespace

Run::Run(Request q, Settings settings, Observer& observer)
    : q_(std::move(q)), settings_(std::move(settings)) {
  Start s = q_.resume.empty() ? start_from_model(q_.model, q_.seed, q_.recipe, q_.recipe_flag,
                                                 preprocessing(q_, observer))
                              : start_from_run(q_.resume);
  if (s.resumed) refuse_changes(settings_, s, q_.resume);
  if (s.resumed) compare_with_checkpoint(settings_, s, q_.resume, observer);
  at_ = s.at;
  origin_ = s.folder;
  name_ = q_.name.empty() ? s.name : q_.name;
  prepared_ = s.prepared;
  resumed_ = s.resumed;
  known_cut_ = saved_cut(*s.model);
  const int64_t fixed = fixed_batch(s.model->main);
  if (!settings_.given("batch") && fixed > 0) {
    settings_.mark("batch", "file");
    q_.fit.batch = 0;
  }
  q_.fit.batch = batch_size_for(*s.model, q_.fit.batch);
  settings_.replace("batch", std::to_string(q_.fit.batch));
  settings_.replace("deterministic", "true");
  open_data(s, observer);
  const std::string made = taken(*s.model, kNewKey);
  if (!settings_.given("epochs") && !s.resumed && at_.step == 0 && !made.empty()) {
    q_.fit.epochs = usual_epochs(made, parts_.train.rows(), q_.fit.batch);
    settings_.mark("epochs", "file");
    settings_.replace("epochs", std::to_string(q_.fit.epochs));
    observer.on_note("epochs",
                     cat(q_.fit.epochs, " for a new network and ", with_commas(parts_.train.rows()),
                         " rows   (--epochs to change)"));
  }
  s.plain = nullptr;
  steps_ = total_steps(q_.fit, parts_.train.rows(), fixed > 0);
  const bool new_rate =
      (settings_.fresh("lr") || was_edited(settings_, s, "lr")) && (!prepared_ || resumed_);
  const bool new_schedule =
      resumed_ && (settings_.changes("schedule") || settings_.changes("schedule-arg"));
  if (prepared_) fit_schedule(s, q_.recipe(), steps_, new_rate, new_schedule, observer);
  const bool scheduled = rate_is_scheduled(*s.model);
  t_ = std::make_unique<Training>(std::move(s.model), at_.seed, q_.program);
  accept_fed(*t_);
  cut_batches();
  if (!new_rate) return;
  // a schedule of ours has been made again from the new rate
  if (scheduled && !prepared_)
    usage_error("OT0004",
                "the training in the file assigns the learning rate in every step (a schedule): "
                "--lr does not apply",
                "remove --lr, or prepare the file again with it:  onnxtrain prepare MODEL --lr "
                "RATE --schedule KIND");
  if (!scheduled) t_->set_rate(std::strtod(settings_.value("lr").c_str(), nullptr));
}

// As many target columns were named as the output has numbers per row: they are numbers to learn,
// or a 0 or 1 each, where `auto` took the output for the scores of one class per row.
LossChoice Run::choose_by_columns(Start& s) {
  if (s.resumed || !s.prepared || s.chosen.size() != 1 || s.chosen[0].kind != "cross_entropy")
    return {};
  const auto columns = std::count(q_.data.target.begin(), q_.data.target.end(), ',') + 1;
  if (columns < 2 || columns != describe_scores(*s.model).classes) return {};
  LossChoice c = s.chosen[0];
  c.kind = "mse";
  c.because = cat(columns, " target columns are named and '", c.output, "' has ", columns,
                  " numbers per row");
  q_.recipe = [base = q_.recipe] {
    Recipe r = base();
    first_loss(r).kind = "mse";
    return r;
  };
  prepare_again(s, q_.recipe());
  return c;
}

// A scale that is measured becomes part of a model that is prepared here: it then takes raw numbers
// wherever it goes.
void Run::scale_in_graph(Start& s, const Known& known) {
  if (s.resumed || !s.prepared || !is_measured_scale(q_.data.feed.adapt.scale)) return;
  if (data_spec(s.model->metadata).scaled_in_graph()) {
    s.notes.emplace_back("scale", cat(q_.data.feed.adapt.scale,
                                      " is not applied: the model scales its inputs itself"));
    return;
  }
  Observer silent;
  const auto measured =
      load_parts(q_.data, *s.model, fed_inputs(*s.model), at_.seed, known, silent).measured;
  if (measured.empty()) return;
  prepare_again(s, q_.recipe(), [measured](Model m) {
    for (const auto& [input, scale] : measured) {
      InputScale in;
      in.mean = scale.mean;
      in.std = scale.std;
      in.shape = {int64_t(scale.mean.size())};
      m = with_scaled_input(m, input, in, all_ops());
    }
    m.metadata["onnxtrain.scale"] = kScaledInGraph;
    m.metadata.erase("onnxtrain.standard");
    return m;
  });
  s.notes.emplace_back("scale", cat(q_.data.feed.adapt.scale,
                                    ", measured on the training rows and part of the model"));
}

// Rows / (classes * rows of the class): a class of few rows counts as much as one of many.
void Run::balance_classes(Start& s) {
  if (s.resumed || !s.prepared || !q_.balanced) return;
  std::vector<int64_t> labels;
  for (size_t k = 0; k < parts_.train.names.size(); ++k)
    if (parts_.train.names[k] == parts_.train.label)
      labels = labels_by_row(*parts_.train.columns[k]);
  const int64_t classes = describe_scores(*s.model).classes;
  if (labels.empty() || classes < 2)
    usage_error("OT0039", "--class-weights balanced needs one class label per row",
                classes < 2 ? "remove it: the model learns numbers, or one score per row"
                            : "remove it, or choose a loss for classes:  --loss cross_entropy");
  std::vector<double> counts(size_t(classes), 0);
  for (int64_t c : labels)
    if (c >= 0 && c < classes) ++counts[size_t(c)];
  std::vector<float> weights;
  for (double n : counts)
    weights.push_back(n > 0 ? float(double(labels.size()) / (double(classes) * n)) : 1.0F);
  q_.recipe = [base = q_.recipe, weights] {
    Recipe r = base();
    first_loss(r).class_weights = weights;
    return r;
  };
  const auto notes = s.notes;
  prepare_again(s, q_.recipe());
  s.notes = notes;
}

// Which class has which weight: the order of names is not the user's.
void Run::note_class_weights(Start& s) const {
  if (s.resumed || !s.prepared || parts_.data.labels.empty()) return;
  const Recipe r = q_.recipe();
  if (r.losses.size() != 1) return;
  const std::vector<int64_t>& labels = parts_.data.labels;
  if (const auto ignored = r.losses[0].ignore_index;
      ignored && std::find(labels.begin(), labels.end(), *ignored) == labels.end())
    s.notes.emplace_back("note", cat("no row has label ", *ignored,
                                     ": --ignore-index leaves nothing out of the loss"));
  if (r.losses[0].class_weights.empty()) return;
  const std::vector<float>& weights = r.losses[0].class_weights;
  const std::vector<std::string>& names = parts_.data.target.classes;
  constexpr size_t kShown = 10;
  std::string text;
  for (size_t k = 0; k < weights.size() && k < kShown; ++k)
    text +=
        cat(k ? ", " : "", k < names.size() ? cat("'", names[k], "' ") : cat(k, ": "), weights[k]);
  s.notes.emplace_back("weights", cat(text, weights.size() > kShown ? ", ..." : ""));
}

// The data, and the loss as far as it follows from the data.
void Run::open_data(Start& s, Observer& observer) {
  const bool goes_on = s.resumed || s.at.step > 0;
  Known known{data_spec(s.model->metadata), goes_on};
  if (q_.preprocess && s.plain) known.spec.of_run = false;  // it was put in front just now
  if (s.resumed) require_data(q_.resume, q_.data);
  const LossChoice by_columns = choose_by_columns(s);
  scale_in_graph(s, known);
  if (!by_columns.kind.empty()) {
    s.chosen = {by_columns};
    note_loss(s, by_columns);
  }
  parts_ = load_parts(q_.data, *s.model, fed_inputs(*s.model), at_.seed, known, observer);
  balance_classes(s);
  note_class_weights(s);
  if (s.chosen.size() == 1) {
    const LossChoice better = better_choice(*s.model, s.chosen[0], parts_.data.target);
    if (!better.kind.empty()) choose_loss_again(s, q_.recipe(), better);
  }
  for (const auto& [label, text] : s.notes) observer.on_note(label, text);
  for (const LeftOut& l : s.left_out) observer.on_warning("OT1285", l.text, l.hint);
  // which rows the run has not seen yet is known for its own split alone
  if (s.resumed && (settings_.changes("valid") || was_edited(settings_, s, "valid")) &&
      parts_.has_valid && parts_.valid_data.feeds.columns.empty() && q_.data.overfit == 0)
    observer.on_warning("OT3116",
                        cat("--valid ", q_.data.valid,
                            " chooses the validation rows anew: rows that the run was trained on "
                            "are among them, and their figures are better than on new data"),
                        "leave --valid out to keep the split of the run, or give another file:  "
                        "--valid FILE");
  check_data(*s.model, goes_on, observer);
}

void Run::set_engine(std::unique_ptr<Engine> engine) {
  engine_ = std::move(engine);
  stepper_ = engine_ ? std::make_unique<EngineStepper>(*t_, *engine_) : nullptr;
}

Run::Run(std::unique_ptr<Training> t, uint64_t seed) : t_(std::move(t)) { at_.seed = seed; }

Run::Run(const std::string& run_or_checkpoint, const ProgramOptions& o) {
  Start s = start_from_run(run_or_checkpoint);
  at_ = s.at;
  origin_ = s.folder;
  name_ = s.name;
  resumed_ = true;
  q_.program = o;
  if (!origin_.empty()) folder_ = std::make_unique<Folder>(origin_);
  known_cut_ = saved_cut(*s.model);
  t_ = std::make_unique<Training>(std::move(s.model), at_.seed, o);
  t_->set_step_count(at_.step);
}

// ------------------------------------------------------------------ the run folder

// Is `folder` the run that the training resumes?
bool Run::goes_on_in(const std::string& folder) const {
  if (q_.resume.empty() && at_.step == 0) return false;
  fs::path from = q_.resume.empty() ? q_.model : q_.resume;
  if (!fs::is_directory(from)) from = fs::absolute(from).parent_path().parent_path();
  std::error_code ec;
  return fs::equivalent(from, folder, ec);
}

void Run::open_folder(Observer& observer) {
  if (!speaks()) return;
  if (!q_.out.empty()) {
    folder_ = std::make_unique<Folder>(Folder::open(q_.out));
    if (!goes_on_in(q_.out))
      if (const std::string kept = folder_->set_aside(); !kept.empty())
        observer.on_note("kept",
                         cat("the run that was in ", q_.out, " before is in ", kept, " now"));
  } else if (!origin_.empty()) {
    folder_ = std::make_unique<Folder>(Folder::open(origin_));
  } else {
    folder_ = std::make_unique<Folder>(Folder::create("runs", name_.empty() ? "model" : name_));
  }
  if (resumed_) check_log(*folder_, at_);
  observer.on_note("run", folder_->path());
  if (!settings_.given("lr") && t_->has_rate()) {
    settings_.mark("lr", prepared_ ? "default" : "file");
    settings_.replace("lr", starting_rate(*t_, prepared_));
  }
  // a path that still means the same when the run is resumed from elsewhere
  for (const auto& [name, value] :
       {std::pair{"data", q_.data.data}, std::pair{"valid", q_.data.valid}})
    if (fs::exists(value) && fs::path(value).is_relative())
      settings_.replace(name, fs::absolute(value).lexically_normal().string());
  write_begin(settings_);
}

void Run::write_begin(const Settings& settings) {
  environment_ = std::make_unique<Environment>(*t_);
  folder_->write_settings(settings);
  if (!q_.command.empty()) folder_->append_command(q_.command);
  folder_->write_text("env.json", environment_->text());
  nlohmann::ordered_json card{{"data", parts_.data.line},
                              {"notes", parts_.data.notes},
                              {"train_rows", parts_.train.rows()},
                              {"valid_rows", parts_.valid.rows()}};
  for (const auto& [key, value] : parts_.data.metadata) card[key] = value;
  parts_.data.metadata["onnxtrain.settings"] = settings.text_for_checkpoint();
  folder_->write_text("data.json", card.dump(2) + "\n");
}

void Run::write_end() const {
  const MemoryUse memory = this->memory();
  folder_->write_text("env.json", environment_->text(&memory));
  folder_->write_text("report.html", run_report(*folder_));
}

// ------------------------------------------------------------------ epochs

std::unique_ptr<Batches> Run::rows_of(const FitOptions& o, Observer& observer) const {
  const int64_t rows = parts_.train.rows();
  const bool whole = fixed_batch(t_->source().main) > 0;
  if (whole && rows < o.batch)
    data_error("OT2115",
               cat("the data has ", rows, " rows, the model takes ", o.batch, " at a time"),
               "export the model with an open batch size");
  if (const int64_t rest = rows % o.batch; whole && rest > 0)
    observer.on_warning("OT3102",
                        cat("the model takes ", o.batch, " rows at a time: ", rest,
                            rest == 1 ? " row" : " rows", " are left out of each epoch"),
                        "");
  const Communicator* c = q_.communicator;
  return column_batches(parts_.train, o.batch, at_.seed, o.shuffle, whole,
                        {c ? c->rank() : 0, c ? c->size() : 1});
}

FitResult Run::run_loop(Batches& train, const FitOptions& o, Observer& observer) {
  NativeStepper native(*t_);
  Stepper& stepper = engine_ ? *stepper_ : native;
  FitTask task{train, parts_.has_valid ? &parts_.valid : nullptr, folder_.get(),
               parts_.data.metadata};
  FitOptions options = o;
  if (engine_) options.sample_operators = false;  // none of ours run
  const Moved moved(*t_);
  FitResult r = run::fit(stepper, task, options, at_, observer);
  if (!engine_) moved.warn_if_nothing(*t_, observer);
  at_ = r.at;
  return r;
}

FitResult Run::fit(const std::atomic<int>& stop, bool profiled, Observer& observer) {
  q_.fit.stop = &stop;
  q_.fit.sample_operators = !profiled;
  if (at_.epoch >= q_.fit.epochs)
    observer.on_note("note", cat("nothing to do: the run has ", at_.epoch, " of ", q_.fit.epochs,
                                 " epochs   (--epochs for more)"));
  FitResult r = run_loop(*rows_of(q_.fit, observer), q_.fit, observer);
  if (folder_) write_end();
  return r;
}

}  // namespace onnxtrain::run
