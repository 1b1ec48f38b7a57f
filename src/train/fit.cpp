// Epochs.
#include "train/fit.hpp"

#include <chrono>
#include <cmath>
#include <filesystem>

#include "core/file.hpp"
#include "data/prefetch.hpp"
#include "data/sampler.hpp"
#include "onnx/onnx.hpp"
#include "train/run_folder.hpp"

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
        sampler_(train.rows(), o.batch, at.seed, o.shuffle),
        prefetch_(train.columns, o.batch) {
    if (valid_) evaluator_ = std::make_unique<Evaluator>(t);
    for (const auto& name : train.names) feeds_[name] = Value();
  }

  FitResult run() {
    start_ = Clock::now();
    while (at_.epoch < o_.epochs && !done_) {
      run_epoch();
      if (o_.patience > 0 && at_.epoch - at_.best_epoch >= o_.patience) break;
    }
    result_.best_epoch = at_.best_epoch;
    result_.at = at_;
    return std::move(result_);
  }

 private:
  bool stopping() const { return o_.stop && o_.stop->load() != 0; }

  void run_epoch() {
    Clock::time_point begin = Clock::now();
    sampler_.set_epoch(uint64_t(at_.epoch));
    prefetch_.start(sampler_.order(), at_.batch);
    double wait = prefetch_.wait_seconds();
    int64_t rows_here = 0, first = at_.batch;
    while (const Batch* b = prefetch_.next()) {
      for (size_t k = 0; k < train_.names.size(); ++k) feeds_[train_.names[k]] = b->tensors[k];
      StepResult r = t_.step(feeds_, -1, false);
      if (!std::isfinite(r.loss)) diverged(r.loss);
      last_loss_ = r.loss;
      at_.loss_sum += r.loss * double(b->rows);
      at_.rows += b->rows;
      rows_here += b->rows;
      ++at_.batch;
      at_.step = t_.step_count();
      observer_.on_step(at_.epoch + 1, at_.batch, sampler_.batches(), r.loss,
                        double(rows_here) / seconds_since(begin));
      if (o_.save_every > 0 && at_.step % uint64_t(o_.save_every) == 0) save_last();
      bool out_of_budget = (o_.max_steps > 0 && int64_t(at_.step) >= o_.max_steps) ||
                           (o_.max_seconds > 0 && seconds_since(start_) >= o_.max_seconds);
      if (stopping() || out_of_budget) {
        done_ = true;
        result_.interrupted = stopping();
        if (at_.batch < sampler_.batches()) {
          // the position stays inside the epoch, so that a resumed run continues with the next
          // batch
          Position here = at_;
          if (!result_.interrupted)
            finish_epoch(begin, rows_here, at_.batch - first, prefetch_.wait_seconds() - wait);
          here.best = at_.best;
          here.best_epoch = at_.best_epoch;
          at_ = here;
          save_last();
          return;
        }
      }
    }
    finish_epoch(begin, rows_here, at_.batch - first, prefetch_.wait_seconds() - wait);
  }

  void finish_epoch(Clock::time_point begin, int64_t rows, int64_t steps, double wait) {
    EpochResult e;
    e.epoch = at_.epoch + 1;
    e.steps = steps;
    e.train_loss = at_.rows ? at_.loss_sum / double(at_.rows) : 0;
    e.seconds = seconds_since(begin);
    e.samples_per_second = double(rows) / std::max(1e-9, e.seconds);
    e.wait_seconds = wait;
    e.rate = t_.has_rate() ? t_.rate() : 0;
    if (valid_) {
      Metrics m = evaluator_->evaluate(*valid_, std::max<int64_t>(o_.batch, 256));
      e.has_valid = true;
      e.valid_loss = m.loss();
      e.metrics = m.values();
      result_.constant_guess = m.constant_guess();
      result_.confusion = m.confusion();
    }
    ++at_.epoch;
    at_.batch = 0;
    at_.loss_sum = 0;
    at_.rows = 0;
    judge(e);
    save_last();
    if (!o_.folder.empty()) {
      RunFolder folder(o_.folder);
      folder.log_epoch(e);
      if (e.best) save_best(folder);
    }
    observer_.on_epoch(e);
    result_.epochs.push_back(std::move(e));
  }

  // The watched number: the first metric on validation data, its loss, or the training loss.
  void judge(EpochResult& e) {
    bool larger =
        e.has_valid && !e.metrics.empty() && Metrics::larger_is_better(e.metrics[0].first);
    double value = !e.has_valid        ? e.train_loss
                   : e.metrics.empty() ? e.valid_loss
                                       : e.metrics[0].second;
    e.best = at_.best_epoch == 0 || (larger ? value > at_.best : value < at_.best);
    if (e.best) {
      at_.best = value;
      at_.best_epoch = e.epoch;
    }
  }

  void save_last() {
    if (o_.folder.empty()) return;
    save_checkpoint(t_, at_, RunFolder(o_.folder).last());
  }

  void save_best(const RunFolder& folder) {
    std::filesystem::copy_file(folder.last(), folder.best() + ".tmp",
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::rename(folder.best() + ".tmp", folder.best());
    Model m = t_.snapshot();
    strip_checkpoint_metadata(m);
    SaveOptions s;
    s.inference_only = true;
    save_model(m, folder.model(), all_ops(), s);
  }

  [[noreturn]] void diverged(double loss) {
    std::string where = o_.folder.empty()
                            ? std::string()
                            : cat("\n  last good state: ", RunFolder(o_.folder).last());
    throw Error(
        ErrorKind::kDiverged, "OT3001",
        cat("loss became ", std::isnan(loss) ? "NaN" : "infinite", " at step ", t_.step_count(),
            " (epoch ", at_.epoch + 1, "); last finite loss ", last_loss_, where),
        "a smaller rate often helps:  --lr 1e-4, or clip the gradients:  --clip 1");
  }

  Training& t_;
  const FeedColumns& train_;
  const FeedColumns* valid_;
  const FitOptions& o_;
  Position at_;
  FitObserver& observer_;
  Sampler sampler_;
  Prefetcher prefetch_;
  std::unique_ptr<Evaluator> evaluator_;
  Feeds feeds_;
  FitResult result_;
  Clock::time_point start_;
  double last_loss_ = 0;
  bool done_ = false;
};

}  // namespace

FitResult fit(Training& t, const FeedColumns& train, const FeedColumns* valid, const FitOptions& o,
              Position at, FitObserver& observer) {
  t.set_seed(at.seed);
  t.set_step_count(at.step);
  return Loop(t, train, valid, o, at, observer).run();
}

}  // namespace onnxtrain
