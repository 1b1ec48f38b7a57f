// The course of a run.
#include "run/run.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include <nlohmann/json.hpp>

#include "model/batch.hpp"
#include "model/scores.hpp"
#include "onnx/odd_updates.hpp"
#include "run/data/row_order.hpp"
#include "run/data/target_check.hpp"
#include "run/data/whole_batches.hpp"
#include "run/moved.hpp"
#include "run/new/model.hpp"
#include "run/new/parts.hpp"
#include "run/report/report.hpp"

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
  n.images = q.data.images;
  n.seed = q.seed;
  return [n, &observer](const Model& m) { return preprocessed(m, n, observer); };
}

}  // namespace

Run::Run(Request q, Settings settings, Observer& observer)
    : q_(std::move(q)), settings_(std::move(settings)) {
  Start s = q_.start            ? std::move(*q_.start)
            : q_.resume.empty() ? start_from_model(q_.model, q_.seed, q_.recipe, q_.recipe_flag,
                                                   preprocessing(q_, observer))
                                : start_from_run(q_.resume);
  q_.start = nullptr;
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
  const bool new_lr =
      (settings_.fresh("lr") || was_edited(settings_, s, "lr")) && (!prepared_ || resumed_);
  const bool new_schedule =
      resumed_ && (settings_.changes("schedule") || settings_.changes("schedule-arg"));
  if (prepared_) fit_schedule(s, q_.recipe(), steps_, new_lr, new_schedule, observer);
  const bool scheduled = lr_is_scheduled(*s.model);
  t_ = std::make_unique<Training>(std::move(s.model), at_.seed, q_.program);
  accept_fed(*t_);
  if (!prepared_ && !resumed_) warn_about_updates(observer);
  cut_batches();
  if (!new_lr) return;
  // a schedule of ours has been made again from the new learning rate
  if (scheduled && !prepared_)
    usage_error("OT0004",
                "the training in the file assigns the learning rate in every step (a schedule): "
                "--lr does not apply",
                "remove --lr, or prepare the file again with it:  onnxtrain prepare MODEL --lr "
                "RATE --schedule KIND");
  if (!scheduled) t_->set_lr(std::strtod(settings_.value("lr").c_str(), nullptr));
}

// A training that the file brings, which somebody may have written or edited.
void Run::warn_about_updates(Observer& observer) const {
  refuse_impossible_updates(t_->source());
  for (const OddUpdate& odd : odd_updates(t_->source()))
    observer.on_warning("OT3134", odd.text, odd.hint);
  if (t_->has_lr() && t_->lr() < 0)
    observer.on_warning("OT3130",
                        cat("the learning rate of the file is ", t_->lr(),
                            ": training makes the loss larger, not smaller"),
                        "give another one:  --lr 1e-3");
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
  if (known_cut_.blocks > 1) distribute(nullptr, {});  // the blocks that it had, for the same bits
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
  if (!settings_.given("lr") && t_->has_lr()) {
    settings_.mark("lr", prepared_ ? "default" : "file");
    settings_.replace("lr", starting_lr(*t_, prepared_));
  }
  // a path that still means the same when the run is resumed from elsewhere
  for (const auto& [name, value] :
       {std::pair{"data", q_.data.data}, std::pair{"valid", q_.data.valid},
        std::pair{"images", q_.data.images}})
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
  if (!o.shuffle)
    if (const std::string problem = order_problem(parts_.train, o.batch); !problem.empty())
      observer.on_warning("OT3120", problem, "leave --no-shuffle out");
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
  options.lr_known = prepared_ && steps_ > 0;
  const Moved moved(*t_);
  FitResult r = run::fit(stepper, task, options, at_, observer);
  warn_if_data_changed(observer);
  if (!engine_) moved.warn_if_nothing(*t_, r.at.step - at_.step, observer);
  at_ = r.at;
  return r;
}

// Arrays are not copied: who writes to them meanwhile changes what is learnt.
void Run::warn_if_data_changed(Observer& observer) const {
  const std::vector<ColumnPtr>& columns = parts_.data.feeds.columns;
  if (columns.empty() || hash_rows(columns).text() == parts_.all.text()) return;
  const bool file = !q_.data.data.empty();
  observer.on_warning("OT3116",
                      cat("the data changed while it was trained on (", parts_.all.text(),
                          " before, ", hash_rows(columns).text(),
                          " now): what was learnt is of neither, and no run can repeat it"),
                      file ? "let nobody write to the file, or train on a copy of it"
                           : "train on copies of the arrays:  fit(x.copy(), y.copy())");
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
