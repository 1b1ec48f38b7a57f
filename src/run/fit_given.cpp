// Runs on data that is handed over: the C API and Python.
#include <algorithm>
#include <filesystem>

#include "run/data/target_check.hpp"
#include "run/data/usual_values.hpp"
#include "run/data/whole_batches.hpp"
#include "run/given.hpp"
#include "run/new/parts.hpp"
#include "run/run.hpp"
#include "run/same_everywhere.hpp"

namespace onnxtrain::run {

namespace {

bool same_folder(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  std::error_code ec;
  return !a.empty() && !b.empty() && fs::weakly_canonical(a, ec) == fs::weakly_canonical(b, ec);
}

// The names of a table whose values came as arrays.
Dataset with_names(Dataset d, const FitCall& call) {
  for (const std::string& column : d.columns())
    if (d.row_shape(column) == Shape{int64_t(call.features.size())})
      d.set_feature_names(column, call.features);
  d.set_target_names(call.targets);
  return d;
}

}  // namespace

void Run::take_parts(const Given& given, const FitCall& call, const std::string& valid_file,
                     Observer& observer) {
  const Model& m = t_->source();
  const std::vector<ValueDef>& inputs = t_->slots();
  const bool goes_on = resumed_;
  FeedOptions feed = call.feed;
  follow_arrays(data_spec(m.metadata), feed);
  if (feed.classes.empty()) feed.classes = data_spec(m.metadata).classes;
  parts_ = {};
  if (given.stream) {
    parts_.data.line = "batches that the caller makes";
    if (call.valid > 0)
      usage_error("OT1157",
                  "batches have no rows to take a fraction of for validation: valid is (x, y)",
                  "valid=(x_valid, y_valid)");
  } else {
    const bool own_valid = given.valid || !valid_file.empty();
    parts_ = split_parts(*given.data, m, inputs, feed, {0, own_valid ? 0 : call.valid, at_.seed});
  }
  follow_arrays(data_spec(parts_.data.metadata), feed);  // as it was measured
  if (given.valid) {
    set_valid(parts_, feeds_for(*given.valid, m, inputs, feed));
  } else if (!valid_file.empty()) {
    DataRequest q;
    q.feed = feed;
    set_valid(parts_, load_data(valid_file, q, m, inputs, DataPart::kTest,
                                data_spec(goes_on ? m.metadata : parts_.data.metadata)));
  }
  for (const std::string& note : parts_.data.notes) observer.on_note("note", note);
  if (!goes_on && at_.step == 0) check_loss(m);
  if (given.stream) return;
  check_data(m, goes_on, observer);
  if (!goes_on) warn_about_data(parts_, m, feed, observer);
}

// Epochs and steps of a run count from its beginning. A trainer that nobody resumed is asked for
// more of them, and so is every one that gets batches: they have no beginning.
void Run::count_from_here(FitOptions& o, bool stream, bool goes_on) {
  at_.step = t_->step_count();  // steps of the caller's own count too
  // older versions logged epochs of batches, but did not count them in the checkpoint
  const bool uncounted = at_.step > 0 && at_.epoch == 0 && at_.batch == 0;
  if (stream && goes_on && uncounted) at_.epoch = folder_->logged_epochs();
  if (!resumed_ || stream) o.epochs += at_.epoch;
  if (resumed_) return;
  if (o.max_steps > 0) o.max_steps += int64_t(at_.step);
  at_.batch = 0;
  at_.loss_sum = 0;
  at_.rows = 0;
}

void Run::enter(const std::string& out, bool goes_on) {
  if (out.empty() || !speaks()) {
    folder_ = nullptr;
    return;
  }
  folder_ = std::make_unique<Folder>(Folder::open(out));
  if (!goes_on) folder_->set_aside();  // logs of two runs do not mix
}

// Whoever gave each process rows of its own would lose most of them.
std::unique_ptr<Batches> Run::batches_of(BatchStream& stream) const {
  Communicator* c = q_.communicator;
  const auto same = [c](uint64_t hash) {
    check_same(
        c, {{"batch (fit takes whole batches, the same in all, and each its rows of them)", hash}});
  };
  return stream_batches(stream, t_->source(), t_->slots(), {c ? c->rank() : 0, c ? c->size() : 1},
                        same);
}

FitResult Run::fit(const Given& asked, FitCall call, const std::atomic<int>& stop,
                   Observer& observer) {
  Given given = asked;
  std::set<std::string> recalled;
  std::string valid_file;
  if (!origin_.empty()) {
    const Metadata& known = t_->source().metadata;
    const auto settings = known.find("onnxtrain.settings");
    recalled = recall(Folder(origin_), call, valid_file,
                      settings == known.end() ? std::string() : settings->second);
  }
  KeptData kept;
  if (!given.data && !given.stream) {
    kept = recall_data(origin_);
    given.data = &kept.data;
    if (!given.valid && kept.has_valid && call.given.count("valid") == 0) given.valid = &kept.valid;
  }
  if (given.valid || (given.stream && recalled.count("valid") != 0)) {
    call.valid = 0;
    valid_file.clear();
  }
  Dataset named;
  if (given.data && !(call.features.empty() && call.targets.empty())) {
    named = with_names(*given.data, call);
    given.data = &named;
  }
  if (!resumed_ && t_->step_count() == 0) warn_about_updates(observer);
  take_parts(given, call, valid_file, observer);
  if (!given.stream) call.fit.batch = batch_size_for(t_->source(), call.fit.batch);
  std::unique_ptr<Batches> batches =
      given.stream ? batches_of(*given.stream) : rows_of(call.fit, observer);
  const auto made = t_->source().metadata.find(kNewKey);
  if (!given.stream && !resumed_ && t_->step_count() == 0 && made != t_->source().metadata.end() &&
      call.given.count("epochs") == 0)
    call.fit.epochs = usual_epochs(made->second, parts_.train.rows(), call.fit.batch);
  observer.on_plan(call.fit.epochs);
  const bool goes_on = folder_ && same_folder(call.out, folder_->path());
  count_from_here(call.fit, given.stream != nullptr, goes_on);
  call.fit.stop = &stop;
  enter(call.out, goes_on);
  if (folder_) {
    write_begin(settings_of(call, recalled, at_.seed));
    folder_->keep_data(kept_arrays(given, call.keep_bytes));
  }
  const FitOptions& o = call.fit;
  check_processes(cat("batch_size = ", o.batch, "\nepochs = ", o.epochs, "\nshuffle = ", o.shuffle,
                      "\nsteps = ", o.max_steps, "\npatience = ", o.patience,
                      "\nmicro_blocks = ", t_->blocks(), "\nmetric = ", o.metric, "\n"));
  FitResult r = run_loop(*batches, call.fit, observer);
  if (folder_) write_end();
  return r;
}

Evaluation Run::evaluate(const Dataset& d, int64_t batch) {
  FeedOptions feed;
  follow_arrays(data_spec(t_->source().metadata), feed);
  follow_arrays(data_spec(parts_.data.metadata), feed);
  const LoadedData data = feeds_for(d, t_->source(), t_->slots(), feed);
  NativeStepper native(*t_);
  if (batch <= 0) batch = 256;
  Metrics metrics = Evaluator(engine_ ? *stepper_ : native).evaluate(data.feeds, batch);
  return {std::move(metrics), data.feeds.rows(), data_spec(t_->source().metadata).classes,
          output_metrics(training(), data.feeds, batch), unlike(data.feeds)};
}

std::string Run::unlike(const FeedColumns& rows) const {
  const Metadata& own = parts_.data.metadata;
  const Metadata& known = own.count(kValuesKey) != 0 ? own : t_->source().metadata;
  return unlike_training(rows, known, data_spec(known).features);
}

void Run::save(const std::string& path) {
  training().gather_state(0);
  if (!speaks()) return;
  Position at = at_;
  const Training& now = training();
  at.step = now.step_count();
  at.seed = now.seed();
  save_checkpoint(now, at, path);
}

}  // namespace onnxtrain::run
