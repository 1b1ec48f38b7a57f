// Epochs. What is written when, so that a process killed at any moment can be resumed to the same
// bits: the epoch's line in the log, then the best model, then last.train.onnx. A line that a
// resumed run would write again is already there and is passed over (RunFolder).
#include "run/fit.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "core/file.hpp"
#include "data/prefetch.hpp"
#include "data/sampler.hpp"
#include "onnx/onnx.hpp"
#include "runtime/finite.hpp"
#include "run/run_folder.hpp"
#include "run/slowest.hpp"
#include "run/whole_batches.hpp"

namespace onnxtrain {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}

class Loop {
 public:
  Loop(Training& t, const FeedColumns& train, const FeedColumns* valid, const FitOptions& o,
       Position at, FitObserver& observer)
      : t_(t),
        train_(train),
        valid_(valid),
        o_(o),
        at_(at),
        observer_(observer),
        fixed_(fixed_batch(t) > 0),
        batch_(batch_size_for(t, o.batch)),
        sampler_(train.rows(), batch_, at.seed, o.shuffle, fixed_),
        prefetch_(train.columns, std::min(batch_, std::max<int64_t>(1, train.rows()))),
        target_(describe_scores(t.source())) {
    if (valid_) evaluator_ = std::make_unique<Evaluator>(t);
    if (!o.folder.empty()) folder_ = std::make_unique<RunFolder>(RunFolder::open(o.folder));
    if (folder_ && !o.goes_on) folder_->set_aside();  // logs of two runs do not mix
    if (folder_ && o.sample_operators) sample_ = std::make_unique<OperatorSample>(t, *folder_);
    for (const auto& name : train.names) feeds_[name] = Value();
  }

  FitResult run() {
    start_ = Clock::now();
    if (fixed_) check_whole_batches();
    if (at_.batch > sampler_.batches())
      throw Error(ErrorKind::kCheckpoint, "OT4203",
                  cat("the checkpoint stands at batch ", at_.batch, " of an epoch that has ",
                      sampler_.batches(), " batches: data or batch size are not those of the run"),
                  "resume with the same --data and --batch");
    if (folder_) find_best();
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
    if (best_lost_ && at_.best_epoch == 0) save_best();
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

  bool stopping() const { return o_.stop && o_.stop->load() != 0; }
  bool out_of_budget() const {
    return (o_.max_steps > 0 && int64_t(at_.step) >= o_.max_steps) ||
           (o_.max_seconds > 0 && seconds_since(start_) >= o_.max_seconds);
  }

  void run_epoch() {
    sampler_.set_epoch(uint64_t(at_.epoch));
    prefetch_.start(sampler_.order(), at_.batch, fixed_);
    Mark mark{Clock::now(), prefetch_.wait_seconds(), at_.batch};
    while (const Batch* b = prefetch_.next()) {
      run_step(*b, mark);
      bool whole = at_.batch >= sampler_.batches();
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

  void run_step(const Batch& b, Mark& mark) {
    for (size_t k = 0; k < train_.names.size(); ++k) feeds_[train_.names[k]] = b.tensors[k];
    if (sample_) sample_->before_step();
    StepResult r;
    try {
      r = t_.step(feeds_, -1, false);
    } catch (const NotFiniteError& e) {
      diverged(e);
    }
    if (r.loss == 0) warn_if_all_ignored(b);
    at_.loss_sum += r.loss * double(b.rows);
    at_.rows += b.rows;
    mark.rows += b.rows;
    ++at_.batch;
    at_.step = t_.step_count();
    observer_.on_step(at_.epoch + 1, at_.batch, sampler_.batches(), r.loss,
                      double(mark.rows) / std::max(1e-9, seconds_since(mark.begin)));
  }

  // The position stays inside the epoch, so that a resumed run continues with the next batch.
  void stop_inside(const Mark& mark) {
    if (!result_.interrupted) {
      EpochResult e = measure(mark);
      judge(e);
      publish(e);
    }
    save_last();
  }

  EpochResult measure(const Mark& mark) {
    EpochResult e;
    e.epoch = at_.epoch + 1;
    e.steps = at_.batch - mark.batch;
    e.step = at_.step;
    e.gradient_norm = t_.gradient_norm();
    e.train_loss = at_.rows ? at_.loss_sum / double(at_.rows) : 0;
    e.seconds = seconds_since(mark.begin);
    e.samples_per_second = double(mark.rows) / std::max(1e-9, e.seconds);
    e.wait_seconds = prefetch_.wait_seconds() - mark.wait;
    e.rate = t_.has_rate() ? t_.rate() : 0;
    if (valid_) {
      Metrics m = evaluator_->evaluate(*valid_, std::max<int64_t>(batch_, 256));
      e.has_valid = true;
      e.valid_loss = m.loss();
      e.metrics = m.values();
      result_.constant_guess = m.constant_guess();
      result_.confusion = m.confusion();
    }
    return e;
  }

  void finish_epoch(const Mark& mark) {
    EpochResult e = measure(mark);
    ++at_.epoch;
    at_.batch = 0;
    at_.loss_sum = 0;
    at_.rows = 0;
    judge(e);
    publish(e);
    save_last();
    if (folder_ && o_.keep > 0) folder_->keep_epoch(at_.epoch, o_.keep);
  }

  // The watched number: the first metric on validation data, its loss, or the training loss.
  void judge(EpochResult& e) {
    bool larger =
        e.has_valid && !e.metrics.empty() && Metrics::larger_is_better(e.metrics[0].first);
    double value = !e.has_valid        ? e.train_loss
                   : e.metrics.empty() ? e.valid_loss
                                       : e.metrics[0].second;
    const std::string name = !e.has_valid        ? "train_loss"
                             : e.metrics.empty() ? "valid_loss"
                                                 : "valid_" + e.metrics[0].first;
    // an accuracy and a loss cannot be compared: another number begins anew
    const bool other = !at_.watched.empty() && at_.watched != name;
    e.best = at_.best_epoch == 0 || other || (larger ? value > at_.best : value < at_.best);
    at_.watched = name;
    if (e.best) {
      at_.best = value;
      at_.best_epoch = e.epoch;
    }
  }

  void publish(const EpochResult& e) {
    check_state();
    if (folder_) {
      folder_->log_epoch(e);
      if (!result_.confusion.empty()) folder_->write_confusion(result_.confusion);
      if (e.best) save_best();
    }
    observer_.on_epoch(e);
    result_.epochs.push_back(e);
  }

  void save_last() {
    if (!folder_) return;
    check_state();
    save_checkpoint(t_, at_, folder_->last(), o_.metadata);
  }

  void save_best() {
    save_checkpoint(t_, at_, folder_->best(), o_.metadata);
    export_best(t_.source());
  }

  void export_best(Model m) {
    strip_checkpoint_metadata(m);
    for (const auto& [key, value] : o_.metadata) m.metadata[key] = value;
    SaveOptions s;
    s.inference_only = true;
    save_model(m, folder_->model(), all_ops(), s);
  }

  // Files of the best epoch may have been removed since: what is left of it counts.
  void find_best() {
    if (at_.best_epoch == 0) return;
    const bool model = std::filesystem::exists(folder_->model());
    if (std::filesystem::exists(folder_->best())) {
      Position ignored;
      if (!model) export_best(load_checkpoint(folder_->best(), ignored));
      return;
    }
    best_lost_ = !model;
    observer_.on_warning(
        "OT3103",
        cat("'", folder_->best(), "' (epoch ", at_.best_epoch, ") is gone",
            model ? cat("; its inference model '", folder_->model(),
                        "' stays until an epoch is better")
                  : " and so is its inference model: the best of the epochs from here on counts"));
    if (best_lost_) at_.best_epoch = 0;
  }

  // State that is not finite never replaces a checkpoint.
  void check_state() {
    if (!o_.check_finite) return;
    for (const auto& name : t_.state().names())
      if (not_finite(t_.state().get(name)) && !starts_not_finite(name))
        throw Error(
            ErrorKind::kDiverged, "OT3002",
            cat("state variable '", name, "' is not finite after step ", t_.step_count(),
                "; it is not saved", folder_ ? cat("\n  last good state: ", folder_->last()) : ""),
            "a smaller rate often helps:  --lr 1e-4, or clipped gradients:  --clip 1");
  }

  // Some files begin with infinities on purpose (a running maximum).
  bool starts_not_finite(const std::string& name) const {
    try {
      return not_finite(t_.initial(name));
    } catch (const Error&) {  // no longer known
      return false;
    }
  }

  // Rows that do not make up a batch are other ones in each epoch.
  void check_whole_batches() {
    if (train_.rows() < batch_)
      data_error(
          "OT2115",
          cat("the data has ", train_.rows(), " rows, the model takes ", batch_, " at a time"),
          "export the model with an open batch size");
    if (const int64_t rest = train_.rows() % batch_; rest > 0)
      observer_.on_warning("OT3102",
                           cat("the model takes ", batch_, " rows at a time: ", rest,
                               rest == 1 ? " row" : " rows", " are left out of each epoch"));
  }

  // Ruling G16: a mean over nothing is 0, and worth a word.
  void warn_if_all_ignored(const Batch& b) {
    if (warned_ || !target_.ignore_index) return;
    for (size_t k = 0; k < train_.names.size(); ++k) {
      if (train_.names[k] != train_.label || !dtype_is_integer(b.tensors[k].dtype())) continue;
      std::vector<int64_t> labels = b.tensors[k].to_ints();
      for (int64_t v : labels)
        if (v != *target_.ignore_index) return;
      warned_ = true;
      observer_.on_warning("OT3101",
                           cat("every label of batch ", b.index + 1, " in epoch ", at_.epoch + 1,
                               " is the ignored one (", *target_.ignore_index,
                               "): its loss and gradient are 0 (said once)"));
    }
  }

  [[noreturn]] void diverged(const NotFiniteError& e) {
    std::string where;
    if (folder_) {
      save_last();
      where = cat(".   state before it: ", folder_->last());
    }
    throw Error(ErrorKind::kDiverged, "OT3001",
                cat(e.subject, " at step ", e.step, " (epoch ", at_.epoch + 1, ")",
                    NotFiniteError::history(e.last_loss, e.last_norm),
                    "\n  first bad tensor: ", e.origin, where),
                "a smaller rate often helps:  --lr 1e-4, or clipped gradients:  --clip 1");
  }

  Training& t_;
  const FeedColumns& train_;
  const FeedColumns* valid_;
  const FitOptions& o_;
  Position at_;
  FitObserver& observer_;
  bool fixed_;  // the batch size, by the file: only whole batches can be run
  int64_t batch_;
  Sampler sampler_;
  Prefetcher prefetch_;
  Scores target_;
  std::unique_ptr<Evaluator> evaluator_;
  std::unique_ptr<RunFolder> folder_;
  std::unique_ptr<OperatorSample> sample_;
  Feeds feeds_;
  FitResult result_;
  Clock::time_point start_;
  bool done_ = false, warned_ = false, best_lost_ = false;
};

}  // namespace

FitResult fit(Training& t, const FeedColumns& train, const FeedColumns* valid, const FitOptions& o,
              Position at, FitObserver& observer) {
  t.set_seed(at.seed);
  t.set_step_count(at.step);
  t.set_check_finite(o.check_finite);
  return Loop(t, train, valid, o, at, observer).run();
}

}  // namespace onnxtrain
