// train: from flags to a run.
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "cli/profile_table.hpp"
#include "cli/progress.hpp"
#include "cli/run_files.hpp"
#include "cli/settings.hpp"
#include "cli/train_flags.hpp"
#include "cli/train_start.hpp"
#include "core/file.hpp"
#include "core/memory.hpp"
#include "core/shell.hpp"
#include "data/sampler.hpp"
#include "train/find_rate.hpp"
#include "train/report.hpp"
#include "train/run_folder.hpp"
#include "train/whole_batches.hpp"

namespace onnxtrain::cli {

namespace {

namespace fs = std::filesystem;

std::atomic<int> stop_requested{0};

// Before there is a run folder nothing has been done that could be saved.
void on_early_signal(int) {
  const char text[] = "stopped     nothing was trained yet, nothing was written\n";
  [[maybe_unused]] const auto written = write(STDERR_FILENO, text, sizeof text - 1);
  _exit(130);
}

// The first signal finishes the step and saves, the second leaves at once.
void on_signal(int) {
  if (stop_requested.fetch_add(1) >= 1) _exit(130);
}

void on_signals(void (*handler)(int)) {
  std::signal(SIGINT, handler);
  std::signal(SIGTERM, handler);
}

void resolve(TrainFlags& f, Settings& settings) {
  settings.from_environment();
  if (!f.config.empty()) settings.from_file(f.config, "config");
  bool run = !f.resume.empty() && fs::is_directory(f.resume);
  if (const std::string from = f.resume.empty() ? "" : run_of(f.resume); !from.empty())
    settings.from_file(RunFolder(from).config(), "run",
                       {"model", "out", "resume", "overfit", "find-lr", "dry-run", "quiet",
                        "profile", "progress", "verbose", "threads"});
  set_quiet(f.quiet);
  if (!f.resume.empty() && !fs::exists(f.resume))
    throw Error(ErrorKind::kCheckpoint, "OT4202", cat("there is no checkpoint '", f.resume, "'"),
                "resume from a run folder or a .train.onnx file:  onnxtrain runs");
  if (run) checkpoint_of(f.resume, "last");  // refuses what is no run
  if (!f.resume.empty() && settings.given("model"))
    say("note", cat("'", f.model, "' is not read: the run goes on from its checkpoint"));
  if (f.model.empty() && f.resume.empty())
    usage_error("OT0005", "train needs a MODEL or --resume RUN",
                "onnxtrain train model.onnx --data data.npz");
  if (f.data.data.empty())
    usage_error("OT0005", "train needs --data",
                "onnxtrain train model.onnx --data data.npz   (or  --data synthetic:  to try)");
}

// Rows for training and validation.
struct Parts {
  FeedColumns train, valid;
  bool has_valid = false;
  LoadedData data;
};

Parts load_parts(const TrainFlags& f, const Training& t, uint64_t seed) {
  Parts p;
  p.data = load_data(f.data, f.data.data, t, DataPart::kTrain);
  p.train = p.data.feeds;
  say("data", p.data.line);
  for (const std::string& note : p.data.notes) say("note", note);
  if (f.overfit > 0) {
    std::vector<int64_t> rows;
    for (int64_t k = 0; k < std::min(f.overfit, p.train.rows()); ++k) rows.push_back(k);
    p.train = p.valid = p.train.subset(rows);
    p.has_valid = true;
    say("overfit", cat(rows.size(), " rows, for training and validation alike"));
    return p;
  }
  char* end = nullptr;
  double fraction = std::strtod(f.valid.c_str(), &end);
  if (*end != '\0') {
    LoadedData v = load_data(f.data, f.valid, t, DataPart::kTest);
    p.valid = v.feeds;
    p.has_valid = true;
    say("valid", v.line);
  } else if (!(fraction >= 0 && fraction < 1)) {
    usage_error("OT0003", cat("--valid ", f.valid, " is neither a file nor from 0 up to 1"));
  } else if (fraction > 0) {
    if (p.train.rows() < 2)
      data_error("OT2101", "one row cannot be split into training and validation",
                 "train without validation:  --valid 0");
    Split split = split_rows(p.train.rows(), fraction, seed, p.data.labels);
    p.valid = p.train.subset(split.valid);
    p.train = p.train.subset(split.train);
    p.has_valid = true;
    say("split", cat(with_commas(p.train.rows()), " train   ", with_commas(p.valid.rows()),
                     " valid (", fraction * 100, " %", p.data.labels.empty() ? "" : ", stratified",
                     ", seed ", seed, ")"));
  }
  return p;
}

int64_t total_steps(const TrainFlags& f, const Parts& p, bool whole) {
  int64_t batches = (p.train.rows() + (whole ? 0 : f.fit.batch - 1)) / f.fit.batch;
  int64_t steps = 0;
  if (__builtin_mul_overflow(batches, f.fit.epochs, &steps) || steps > int64_t(1) << 53)
    usage_error("OT0003", cat("--epochs ", f.fit.epochs, " is more than can ever be run"),
                "to train until it no longer helps:  --patience 5");
  return f.fit.max_steps > 0 ? std::min(steps, f.fit.max_steps) : steps;
}

void say_plan(const TrainFlags& f, const Start& s, Training& t, int64_t steps) {
  std::string what = s.prepared ? f.recipe.optimizer : "as the file says,";
  std::string more;
  if (s.prepared && f.recipe.schedule != "constant") more += ", " + f.recipe.schedule;
  if (f.recipe.accumulate > 1) more += cat(", update every ", f.recipe.accumulate, " steps");
  say("plan",
      cat(what, t.has_rate() ? cat(" lr ", t.rate()) : "", more, ", batch ", f.fit.batch, ", ",
          f.fit.epochs, f.fit.epochs == 1 ? " epoch = " : " epochs = ", with_commas(steps),
          " steps, ", t.pool().threads(), " threads (", simd_name(), ")"));
  if (s.prepared && steps < f.recipe.accumulate)
    warn("OT3104",
         cat("an update comes every ", f.recipe.accumulate, " steps, the run has ", steps,
             ": nothing would be learnt"),
         "fewer steps per update (--accumulate), smaller batches or more epochs");
}

// A constant rate is set; a schedule of ours has been made again from the new one (fit_schedule).
void set_rate(const TrainFlags& f, const Start& s, Training& t) {
  if (!rate_is_scheduled(*s.model)) return t.set_rate(*f.recipe.lr);
  if (!s.prepared)
    usage_error("OT0004",
                "the training in the file assigns the learning rate in every step (a schedule): "
                "--lr does not apply",
                "remove --lr, or prepare the file again with it:  onnxtrain prepare MODEL --lr "
                "RATE --schedule KIND");
}

int search_rate(const TrainFlags& f, Training& t, const FeedColumns& data) {
  RateSearch r = find_rate(t, data, f.fit.batch, f.seed);
  std::printf("lr          loss (smoothed)\n");
  for (size_t k = 0; k < r.points.size(); k += 4)
    std::printf("%.2e    %.5g\n", r.points[k].rate, r.points[k].loss);
  if (r.suggestion > 0)
    std::printf("suggestion: --lr %.1e   (where the loss falls fastest)\n", r.suggestion);
  else
    std::printf("no suggestion: the loss never fell\n");
  return 0;
}

std::string checked(const RunFolder& folder, const FeedColumns& sample) {
  const std::optional<double> d = export_difference(folder, sample);
  return d ? cat(", checked: max difference ", *d) : "";
}

void say_result(const TrainFlags& f, const FitResult& r, const RunFolder& folder,
                const FeedColumns& sample) {
  for (const EpochResult& e : r.epochs)
    if (e.epoch == r.best_epoch && !e.metrics.empty())
      say("best", cat("epoch ", e.epoch, ": valid ", e.metrics[0].first, " ",
                      format_metric(e.metrics[0].first, e.metrics[0].second),
                      r.constant_guess > 0 ? cat("; a constant guess gives ",
                                                 std::round(r.constant_guess * 10) / 10, " %")
                                           : ""));
  if (f.overfit > 0 && r.epochs.size() > 1)
    say("overfit", cat("loss ", r.epochs.front().train_loss, " -> ", r.epochs.back().train_loss,
                       r.epochs.back().train_loss < 0.1 * r.epochs.front().train_loss
                           ? ": the model can learn these rows"
                           : ": these rows are not learnt yet; more --epochs, or another --lr"));
  if (fs::exists(folder.model()))
    say("saved", cat(folder.model(), "   inference model (best)", checked(folder, sample)));
  const std::string run = shell_word(folder.path());
  say("next", cat("onnxtrain eval ", run, " --data ", shell_word(f.data.data),
                  "    onnxtrain train --resume ", run, " --epochs ", f.fit.epochs * 2));
}

constexpr size_t kTraceEvents = 200000;

// Where the time went: the table on the terminal, every call in the trace file.
void report_profile(const TrainFlags& f, Training& t, const Profiler& p, uint64_t steps) {
  t.set_observer(nullptr);
  write_file(f.profile, p.chrome_trace());
  print_profile(p.nodes(), Peak::measure(f.threads), int64_t(steps), 15);
  say("profile", cat(f.profile, "   open it in chrome://tracing or ui.perfetto.dev"));
}

size_t memory_of(const TrainFlags& f) {
  if (f.memory.empty()) return 0;
  const size_t bytes = parse_bytes(f.memory);
  if (bytes == 0)
    usage_error("OT0003", cat("--memory ", f.memory, " is not a number of bytes"),
                "for example --memory 500M");
  return bytes;
}

// Is `folder` the run that the training goes on from?
bool goes_on_in(const std::string& folder, const TrainFlags& f, const Start& s) {
  if (f.resume.empty() && s.at.step == 0) return false;
  fs::path from = f.resume.empty() ? f.model : f.resume;
  if (!fs::is_directory(from)) from = fs::absolute(from).parent_path().parent_path();
  std::error_code ec;
  return fs::equivalent(from, folder, ec);
}

RunFolder open_run(const TrainFlags& f, const Start& s) {
  if (!f.out.empty()) {
    RunFolder folder = RunFolder::open(f.out);
    if (!goes_on_in(f.out, f, s))
      if (std::string kept = folder.set_aside(); !kept.empty())
        say("kept", cat("the run that was in ", f.out, " before is in ", kept, " now"));
    return folder;
  }
  if (!s.folder.empty()) return RunFolder::open(s.folder);
  return RunFolder::create("runs", s.name.empty() ? "model" : s.name);
}

void set_fit_options(TrainFlags& f, const RunFolder& folder, const Parts& p) {
  f.fit.folder = folder.path();
  f.fit.goes_on = true;  // open_run has set aside what is not to be continued
  f.fit.shuffle = !f.no_shuffle;
  f.fit.check_finite = !f.allow_non_finite;
  f.fit.metadata = p.data.metadata;
  f.fit.stop = &stop_requested;
  f.fit.sample_operators = f.profile.empty();
}

int train(TrainFlags& f) {
  on_signals(on_early_signal);
  Settings settings(f.app);
  resolve(f, settings);
  Start s = start(f);
  if (!f.resume.empty()) refuse_changes(settings, s, f.resume);
  ProgramOptions po;
  po.threads = f.threads;
  po.memory = memory_of(f);
  auto t = std::make_unique<Training>(s.model, s.at.seed, po);
  if (!settings.given("batch") && fixed_batch(*t) > 0) {
    settings.mark("batch", "file");
    f.fit.batch = 0;
  }
  f.fit.batch = batch_size_for(*t, f.fit.batch);
  settings.replace("batch", std::to_string(f.fit.batch));
  settings.replace("deterministic", "true");
  Parts p = load_parts(f, *t, s.at.seed);
  int64_t steps = total_steps(f, p, fixed_batch(*t) > 0);
  // now the length of the run is known: a schedule that spans it can be made
  bool new_rate = settings.fresh("lr") && (!s.prepared || !f.resume.empty());
  bool new_schedule =
      !f.resume.empty() && (settings.changes("schedule") || settings.changes("schedule-arg"));
  if (fit_schedule(f, s, steps, new_rate, new_schedule))
    t = std::make_unique<Training>(s.model, s.at.seed, po);
  if (new_rate) set_rate(f, s, *t);
  say_plan(f, s, *t, steps);
  if (f.find_lr) return search_rate(f, *t, p.train);
  if (f.dry_run) return 0;
  on_signals(on_signal);
  RunFolder folder = open_run(f, s);
  if (!f.resume.empty()) check_log(folder, s.at);
  say("run", folder.path());
  if (!f.recipe.lr && t->has_rate()) {
    settings.mark("lr", s.prepared ? "default" : "file");
    settings.replace("lr", starting_rate(s, *t));
  }
  write_run_files(folder, settings, f, *t, p.data, p.train.rows(), p.valid.rows());
  set_fit_options(f, folder, p);
  Progress progress(f.progress, f.fit.epochs);
  Profiler profiler(kTraceEvents);
  if (!f.profile.empty()) t->set_observer(&profiler);
  s.model = nullptr;  // its weights need not stay beside those that are trained
  if (s.at.epoch >= f.fit.epochs)
    say("note", cat("nothing to do: the run has ", s.at.epoch, " of ", f.fit.epochs,
                    " epochs   (--epochs for more)"));
  FitResult r = fit(*t, p.train, p.has_valid ? &p.valid : nullptr, f.fit, s.at, progress);
  progress.finish();
  report_memory(folder, *t, po.memory);
  if (!f.profile.empty()) report_profile(f, *t, profiler, r.at.step - s.at.step);
  folder.write_text("report.html", run_report(folder));
  if (r.interrupted) {
    say("stopped", cat("saved; go on with  onnxtrain train --resume ", shell_word(folder.path()),
                       " --epochs ", f.fit.epochs));
    return 130;
  }
  t = nullptr;  // what was written is read again and tried
  say_result(f, r, folder, p.train);
  return 0;
}

}  // namespace

void add_train(Registry& r) {
  static TrainFlags f;
  CLI::App* c = f.add_to(r);
  r.on(c, [] { return train(f); });
}

}  // namespace onnxtrain::cli
