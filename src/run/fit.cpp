// Epochs. What is written when, so that a process killed at any moment can be resumed to the same
// bits, is Folder's order: the epoch's line in the log, the best model, last.train.onnx. A line
// that a resumed run would write again is already there and is passed over.
#include "run/fit.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

#include "run/data/target_check.hpp"
#include "run/first_steps.hpp"
#include "run/folder/best.hpp"
#include "run/metrics/evaluate.hpp"
#include "run/report/slowest.hpp"
#include "runtime/finite.hpp"

namespace onnxtrain::run {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}

constexpr const char* kSmallerLr =
    "try a lower learning rate:  --lr 1e-4, or gradient clipping:  --clip 1";

class Loop {
 public:
  Loop(Stepper& s, const FitTask& task, const FitOptions& o, Position at, Observer& observer)
      : s_(s),
        train_(task.train),
        valid_(task.valid),
        folder_(task.folder),
        metadata_(task.metadata),
        o_(o),
        at_(std::move(at)),
        observer_(observer),
        target_(describe_scores(s.training().source())),
        first_(s, target_, o.lr_known, observer) {
    if (valid_) evaluator_ = std::make_unique<Evaluator>(s);
    if (folder_ && o.sample_operators)
      sample_ = std::make_unique<OperatorSample>(s.training(), *folder_);
  }

  FitResult run() {
    start_ = Clock::now();
    if (train_.batches() > 0 && at_.batch > train_.batches())
      throw Error(ErrorKind::kCheckpoint, "OT4203",
                  cat("the checkpoint stands at batch ", at_.batch, " of an epoch that has ",
                      train_.batches(), " batches: data or batch size are not those of the run"),
                  "resume with the same --data and --batch");
    if (!valid_ && !o_.metric.empty() && o_.metric != "loss")
      usage_error("OT0037",
                  cat("--metric ", o_.metric, " is of the validation rows, and there are none"),
                  "--valid 0.1, or leave --metric out");
    if (valid_) choose_watched();
    if (!valid_ && o_.patience > 0)
      observer_.on_note("note",
                        "--patience watches the training loss: there are no validation rows");
    if (o_.patience > 0 && o_.patience >= o_.epochs - at_.epoch)
      observer_.on_note("note", cat("--patience ", o_.patience, " never stops a training of ",
                                    o_.epochs - at_.epoch, " epochs"));
    const bool best_lost = folder_ && best_is_lost(*folder_, at_, metadata_, observer_);
    while (at_.epoch < o_.epochs && !done_) {
      if (stopping()) {  // before the first step: its beginning is a place to go on from, too
        result_.interrupted = true;
        save_last();
        break;
      }
      if (o_.max_steps > 0 && int64_t(at_.step) >= o_.max_steps) break;
      run_epoch();
      if (o_.patience > 0 && at_.epoch - at_.best_epoch >= o_.patience) break;
    }
    if (best_lost && at_.best_epoch == 0) save_best();
    if (sample_) sample_->finish();
    result_.best_epoch = at_.best_epoch;
    result_.at = at_;
    return std::move(result_);
  }

 private:
  struct Mark {  // where an epoch, or the part of it that this process runs, began
    Clock::time_point begin;
    double wait;
    int64_t batch, rows = 0;
  };

  // Several processes stop together: what one wants, all learn of in the next step.
  bool stopping() const {
    return parallel_ ? (agreed_ & kStop) != 0 : o_.stop && o_.stop->load() != 0;
  }
  bool out_of_time() const { return o_.max_seconds > 0 && seconds_since(start_) >= o_.max_seconds; }
  bool out_of_budget() const {
    return (o_.max_steps > 0 && int64_t(at_.step) >= o_.max_steps) ||
           (parallel_ ? (agreed_ & kTime) != 0 : out_of_time());
  }
  void agree_before_step() {
    if (parallel_)
      s_.training().wish((o_.stop && o_.stop->load() != 0 ? kStop : 0) |
                         (out_of_time() ? kTime : 0));
  }

  void run_epoch() {
    train_.start(at_.epoch, at_.batch);
    Mark mark{Clock::now(), train_.wait_seconds(), at_.batch};
    while (const FedBatch* b = train_.next()) {
      run_step(*b, mark);
      // whether a stream has more only its end tells
      const bool whole = train_.batches() > 0 && at_.batch >= train_.batches();
      if (stopping() || out_of_budget()) {
        done_ = true;
        result_.interrupted = stopping();
        if (!whole) return stop_inside(mark);
      } else if (!whole && o_.save_every > 0 && at_.step % uint64_t(o_.save_every) == 0) {
        save_last();
      }
    }
    finish_epoch(mark);
  }

  void run_step(const FedBatch& b, Mark& mark) {
    if (at_.step == 0 && !checked_outputs_) check_first(b);
    if (sample_) sample_->before_step();
    double loss = 0;
    agree_before_step();
    try {
      loss = s_.step(b.feeds);
      if (parallel_) agreed_ = s_.training().wishes();
    } catch (const NotFiniteError& e) {
      diverged(e);
    }
    if (loss == 0) warn_if_all_ignored(b);
    first_.after_step(b.feeds, loss, train_.batches() > 0 && at_.batch + 1 >= train_.batches());
    if (at_.epoch == 0 && train_.is_stream()) note_labels(b);
    const int64_t rows = parallel_ ? s_.training().batch_rows() : b.rows;
    at_.loss_sum += loss * double(rows);
    at_.rows += rows;
    mark.rows += rows;
    ++at_.batch;
    at_.step = s_.step_count();
    observer_.on_step(at_.epoch + 1, at_.batch, train_.batches(), loss,
                      double(mark.rows) / std::max(1e-9, seconds_since(mark.begin)));
  }

  const Tensor* labels_of(const FedBatch& b) const {
    const auto it = b.feeds.find(train_.label());
    const Tensor* t = it == b.feeds.end() ? nullptr : std::get_if<Tensor>(&it->second);
    return t && dtype_is_integer(t->dtype()) ? t : nullptr;
  }

  // Labels of a stream are judged over the whole epoch: a batch may lack any class.
  void note_labels(const FedBatch& b) {
    if (const Tensor* t = labels_of(b))
      for (int64_t v : t->to_ints())
        if (v != target_.ignore_index) lowest_ = std::min(lowest_.value_or(v), v);
  }

  void warn_about_labels() {
    if (lowest_ != 1 || target_.classes < 2) return;
    observer_.on_warning(
        "OT3119",
        "no label of the first epoch is 0: if the labels count from 1, every class "
        "was trained as the next one",
        "subtract 1 from the labels");
    lowest_.reset();
  }

  // What the model gives for the first batch must be what the loss takes.
  void check_first(const FedBatch& b) {
    checked_outputs_ = true;
    const Model& m = s_.training().source();
    if (!outputs_in_doubt(m)) return;
    const Tensor scores = Evaluator(s_.training()).scores(b.feeds);
    if (scores.defined()) check_outputs(m, scores);
  }

  // The position stays inside the epoch, so that a resumed run continues with the next batch.
  void stop_inside(const Mark& mark) {
    if (!result_.interrupted) {
      EpochResult e = measure(mark);
      judge(e, at_);
      publish(e);
    }
    save_last();
  }

  EpochResult measure(const Mark& mark) {
    EpochResult e;
    e.epoch = at_.epoch + 1;
    e.steps = at_.batch - mark.batch;
    e.step = at_.step;
    e.gradient_norm = s_.gradient_norm();
    e.train_loss = at_.rows ? at_.loss_sum / double(at_.rows) : 0;
    e.seconds = seconds_since(mark.begin);
    e.samples_per_second = double(mark.rows) / std::max(1e-9, e.seconds);
    e.wait_seconds = train_.wait_seconds() - mark.wait;
    e.lr = s_.lr();
    if (valid_) {
      if (!s_.evaluates() || !evaluator_->refused().empty())
        s_.training();  // the evaluator reads its state
      PredictionSample sample = evaluator_->sample_of(*valid_);
      std::vector<OutputMetrics> outputs;
      Metrics m = evaluator_->evaluate(
          *valid_, std::max<int64_t>(o_.batch, 256), folder_ ? &sample : nullptr,
          s_.parallel() ? s_.training().communicator() : nullptr, &outputs);
      say_where_evaluated();
      predictions_ = sample.text();
      e.has_valid = true;
      e.valid_loss = m.loss();
      e.metrics = epoch_metrics(m, outputs, o_.metric);
      e.watches_loss = watches_loss_;
      result_.constant_guess = m.constant_guess();
      result_.constant_loss = m.constant_loss();
      result_.confusion = m.confusion();
    }
    return e;
  }

  // No target is before the others: of several, the sum of their losses decides.
  void choose_watched() {
    Metrics::check_name(o_.metric);
    const std::vector<JudgedOutput> all = judged_outputs(s_.training().source());
    watches_loss_ = o_.metric == "loss" || (o_.metric.empty() && all.size() > 1);
    if (!watches_loss_ || !o_.metric.empty()) return;
    std::vector<std::string> names;
    for (const JudgedOutput& j : all) names.push_back(j.to.output);
    observer_.on_note("watched", cat("the validation loss, in which ", listed(names),
                                     " are added up   (for one of them:  --metric ", names[0], "_",
                                     all[0].to.metrics.first_name(), ")"));
  }

  // Once: the run's numbers come from two runtimes then.
  void say_where_evaluated() {
    if (said_where_ || evaluator_->refused().empty()) return;
    said_where_ = true;
    observer_.on_warning(
        "OT4513", cat("the engine does not evaluate, this library does: ", evaluator_->refused()),
        "");
  }

  void finish_epoch(const Mark& mark) {
    warn_about_labels();
    EpochResult e = measure(mark);
    ++at_.epoch;
    at_.batch = 0;
    at_.loss_sum = 0;
    at_.rows = 0;
    judge(e, at_);
    publish(e);
    first_.after_epoch(e, o_.epochs);
    save_last();
    if (folder_ && o_.keep > 0) folder_->keep_epoch(at_.epoch, o_.keep);
  }

  void publish(const EpochResult& e) {
    gather();
    check_state();
    if (folder_) {
      folder_->log_epoch(e);
      if (e.best && !result_.confusion.empty()) folder_->write_confusion(result_.confusion);
      if (e.best && !predictions_.empty()) folder_->write_text("predictions.json", predictions_);
      if (e.best) save_best();
    }
    observer_.on_epoch(e);
    result_.epochs.push_back(e);
  }

  // Optimizer state that processes share out goes to the one that saves.
  void gather() {
    if (parallel_) s_.training().gather_state(0);
  }

  void save_last() {
    gather();
    if (!folder_) return;
    check_state();
    // the best epoch's checkpoint says the same: it was made once and is copied
    if (best_written_ == stamp() && copy_checkpoint(folder_->best(), folder_->last())) return;
    save_checkpoint(s_.training(), at_, folder_->last(), metadata_);
  }

  void save_best() {
    gather();
    if (!folder_) return;
    save_checkpoint(s_.training(), at_, folder_->best(), metadata_);
    best_written_ = stamp();
    export_inference(s_.training().source(), metadata_, folder_->model());
  }

  // The state changes with a step, or when somebody assigns to it (in on_epoch).
  using Stamp = std::pair<uint64_t, uint64_t>;
  Stamp stamp() { return {s_.step_count(), s_.training().state().assignments()}; }

  // State that is not finite never replaces a checkpoint. It is looked at once.
  void check_state() {
    if (!o_.check_finite || checked_ == stamp()) return;
    const Training& t = s_.training();
    for (const auto& name : t.state().names())
      if (not_finite(t.state().get(name)) && !starts_not_finite(name))
        throw Error(
            ErrorKind::kDiverged, "OT3002",
            cat("state variable '", name, "' is not finite after step ", s_.step_count(),
                "; it is not saved", folder_ ? cat("\n  last good state: ", folder_->last()) : ""),
            kSmallerLr);
    checked_ = stamp();
  }

  // Some files begin with infinities on purpose (a running maximum).
  bool starts_not_finite(const std::string& name) const {
    const std::optional<Tensor> first = s_.training().initial(name);
    return first && not_finite(*first);
  }

  // Ruling G16: a mean over nothing is 0, and worth a word.
  void warn_if_all_ignored(const FedBatch& b) {
    if (warned_ || !target_.ignore_index) return;
    const Tensor* t = labels_of(b);
    if (!t) return;
    for (int64_t v : t->to_ints())
      if (v != *target_.ignore_index) return;
    warned_ = true;
    observer_.on_warning("OT3101",
                         cat("every label of batch ", b.index + 1, " in epoch ", at_.epoch + 1,
                             " is the ignored one (", *target_.ignore_index,
                             "): its loss and gradient are 0 (said once)"),
                         "");
  }

  [[noreturn]] void diverged(const NotFiniteError& e) {
    std::string where;
    save_last();
    if (folder_) {
      where = cat(".   state before it: ", folder_->last());
    }
    throw Error(ErrorKind::kDiverged, "OT3001",
                cat(e.subject, " at step ", e.step, " (epoch ", at_.epoch + 1, ")",
                    NotFiniteError::history(e.last_loss, e.last_norm),
                    "\n  first bad tensor: ", e.origin, where),
                std::isnan(e.last_loss) && e.step <= 1 ? NotFiniteError::advice(e.step, e.last_loss)
                                                       : kSmallerLr);
  }

  Stepper& s_;
  Batches& train_;
  const FeedColumns* valid_;
  const Folder* folder_;
  const std::map<std::string, std::string>& metadata_;
  const FitOptions& o_;
  Position at_;
  Observer& observer_;
  Scores target_;
  FirstSteps first_;
  std::unique_ptr<Evaluator> evaluator_;
  std::unique_ptr<OperatorSample> sample_;
  FitResult result_;
  Clock::time_point start_;
  std::optional<Stamp> checked_, best_written_;
  std::optional<int64_t> lowest_;  // label of a stream
  std::string predictions_;        // of the last evaluation, for the report
  static constexpr int kStop = 1, kTime = 2;
  const bool parallel_ = s_.parallel();
  int agreed_ = 0;
  bool watches_loss_ = false;  // whatever the metrics are
  bool done_ = false, warned_ = false, checked_outputs_ = false, said_where_ = false;
};

}  // namespace

FitResult fit(Stepper& stepper, const FitTask& task, const FitOptions& o, Position at,
              Observer& observer) {
  stepper.begin(at.seed, at.step, o.check_finite);
  return Loop(stepper, task, o, std::move(at), observer).run();
}

}  // namespace onnxtrain::run
