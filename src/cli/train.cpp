// train: from flags to a run.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include <nlohmann/json.hpp>

#include "cli/flags/output_file.hpp"
#include "cli/flags/settings.hpp"
#include "cli/flags/train_flags.hpp"
#include "cli/print/parameter_counts.hpp"
#include "cli/print/profile_table.hpp"
#include "cli/print/progress.hpp"
#include "cli/processes/engine_process.hpp"
#include "cli/processes/fallback_process.hpp"
#include "core/file.hpp"
#include "core/shell.hpp"
#include "core/text.hpp"
#include "run/borrowed.hpp"
#include "run/lr_finder.hpp"
#include "run/predict.hpp"
#include "run/resumed_settings.hpp"
#include "run/run.hpp"

namespace onnxtrain::cli {

namespace {

namespace fs = std::filesystem;

std::atomic<int> stop_requested{0};

// Before there is a run folder nothing has been done that could be saved.
void on_early_signal(int) {
  if (quiet()) _exit(130);
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
  std::signal(SIGUSR1, handler);  // of launch; schedulers send it before a job's time is over
}

// Who has only data gets a model from `new`.
std::string model_hint(const TrainFlags& f) {
  if (f.data.data.empty()) return "onnxtrain train model.onnx --data data.npz";
  const bool folder = fs::is_directory(f.data.data);
  return cat("make a model for the data, then train it:  onnxtrain new ", folder ? "cnn" : "mlp",
             " --data ", shell_word(f.data.data),
             f.data.target.empty() ? std::string() : " --target " + shell_word(f.data.target),
             " -o model.onnx");
}

// start: of the run that is resumed, when it was read for its settings.
run::Settings resolve(TrainFlags& f, run::Borrowed& borrowed, std::shared_ptr<run::Start>& start) {
  run::Settings settings = settings_of(f.app);
  settings.from_environment();
  if (!f.config.empty()) settings.from_file(f.config, "config");
  set_quiet(f.quiet);
  f.processes.options.program =
      cat("onnxtrain train", f.resume.empty() ? "" : " --resume", f.dry_run ? " --dry-run" : "");
  if (!f.resume.empty())
    if (Communicator* c = connect_processes(f.processes.options))
      f.resume = borrowed.find(*c, f.resume, run::Borrowed::For::kResuming);
  if (!f.resume.empty() && !fs::exists(f.resume))
    throw Error(ErrorKind::kCheckpoint, "OT4202", cat("there is no checkpoint '", f.resume, "'"),
                "resume from a run folder or a .train.onnx file:  onnxtrain runs");
  if (!f.resume.empty()) {
    checkpoint_of(f.resume, "last");  // refuses what is no run
    Narrator narrator;
    start = run::settings_of_run(f.resume, settings, narrator);
    set_quiet(f.quiet);
  }
  if (!f.resume.empty() && settings.given("model"))
    say("note", cat("'", f.model, "' is not read: the run resumes from its checkpoint"));
  if (!f.resume.empty()) settings.mark("model", "run");
  if (f.model.empty() && f.resume.empty())
    usage_error("OT0005", "train needs a MODEL or --resume RUN", model_hint(f));
  if (f.data.data.empty())
    usage_error("OT0005", "train needs --data",
                "onnxtrain train model.onnx --data data.npz   (or  --data synthetic:  to try)");
  return settings;
}

// "2,854 parameters trained, 20 frozen"
std::string parameter_text(const Model& m) {
  const ParameterCounts n = count_parameters(m);
  return cat(with_commas(n.trained), " parameters trained", frozen_text(n));
}

void say_plan(const TrainFlags& f, run::Run& r) {
  std::string what = r.prepared() ? f.recipe.optimizer : "as the file says,";
  std::string more;
  if (r.prepared() && f.recipe.schedule != "constant") more += ", " + f.recipe.schedule;
  if (f.recipe.accumulate > 1) more += cat(", update every ", f.recipe.accumulate, " steps");
  Training& t = r.training();
  const int64_t epochs = r.options().epochs;
  say("plan",
      cat(what, t.has_lr() ? cat(" lr ", t.lr()) : "", more, ", batch ", r.options().batch, ", ",
          epochs, epochs == 1 ? " epoch = " : " epochs = ", with_commas(r.steps()), " steps, ",
          t.pool().threads(), t.pool().threads() == 1 ? " thread (" : " threads (", simd_name(),
          "), ", parameter_text(t.source()), processes_text(t)));
  if (const std::string where = where_nodes_run(t.source().main); !where.empty())
    say("plan", where);
  if (r.prepared() && r.steps() < f.recipe.accumulate)
    warn("OT3104",
         cat("an update comes every ", f.recipe.accumulate, " steps, the run has ", r.steps(),
             ": nothing would be learnt"),
         "fewer steps per update (--accumulate), smaller batches or more epochs");
}

int search_lr(const TrainFlags& f, run::Run& run) {
  const run::LrFinder r =
      run::find_lr(run.training(), run.parts().train, run.options().batch, f.seed);
  std::printf("lr          loss (smoothed)\n");
  for (size_t k = 0; k < r.points.size(); k += 4)
    std::printf("%.2e    %.5g\n", r.points[k].lr, r.points[k].loss);
  if (r.suggestion > 0)
    std::printf("suggestion: --lr %.1e   (where the loss falls fastest)\n", r.suggestion);
  else
    std::printf("no suggestion: the loss never fell\n");
  return 0;
}

std::string checked(const TrainFlags& f, const run::Folder& folder,
                    const run::FeedColumns& sample) {
  ProgramOptions program;
  program.threads = f.threads;
  program.limits = f.limits.limits();
  const std::optional<double> d = run::export_difference(folder, sample, program);
  return d ? cat(", checked: max difference ", *d) : "";
}

void say_best(const TrainFlags& f, const run::FitResult& r) {
  for (const run::EpochResult& e : r.epochs) {
    if (e.epoch != r.best_epoch || e.metrics.empty()) continue;
    const std::string guess = constant_guess_text(r.constant_guess, e.metrics[0].first);
    std::string figures =
        e.watches_loss ? "loss " + format_metric("loss", e.valid_loss) : std::string();
    for (const auto& [name, value] : e.metrics)  // the watched one, and what the guess has
      if (figures.empty() || name.ends_with("rmse") || name.ends_with("accuracy"))
        figures += cat(figures.empty() ? "" : ", ", name, " ", format_metric(name, value));
    say("best", cat("epoch ", e.epoch, ": valid ", figures, guess.empty() ? "" : "; " + guess));
    if (const run::Guess g = run::only_guessed(r, f.data.scale == "standard"); !g.text.empty())
      warn("OT3118", g.text, g.hint);
    return;
  }
}

void say_result(const TrainFlags& f, const run::FitResult& r, const run::Folder& folder,
                const run::FeedColumns& sample) {
  say_best(f, r);
  if (f.overfit > 0 && r.epochs.size() > 1)
    say("overfit", cat("loss ", r.epochs.front().train_loss, " -> ", r.epochs.back().train_loss,
                       r.epochs.back().train_loss < 0.1 * r.epochs.front().train_loss
                           ? ": the model can learn these rows"
                           : ": these rows are not learnt yet; more --epochs, or another --lr"));
  if (fs::exists(folder.model()))
    say("saved", cat(folder.model(), "   inference model (best)", checked(f, folder, sample)));
  const std::string run = shell_word(folder.path());
  // a table that was piped in has to come again
  const std::string piped = f.data.data == "-" ? " --data - < TABLE.csv" : "";
  // how the file is read is not part of the run: another one may differ
  const std::string reading = f.data.reading();
  const std::string data = piped.empty() ? " --data " + shell_word(f.data.data) : piped;
  say("next",
      cat("onnxtrain eval ", run, reading, fallback_words(), data, "    onnxtrain train --resume ",
          run, " --epochs ", f.fit.epochs * 2, fallback_words(), piped));
}

// The last line of --json.
void print_result(const run::FitResult& r, const run::Folder& folder) {
  nlohmann::ordered_json j{{"run", folder.path()}, {"best_epoch", r.best_epoch}};
  if (fs::exists(folder.model())) j["model"] = folder.model();
  for (const run::EpochResult& e : r.epochs) {
    if (e.epoch != r.best_epoch) continue;
    if (e.has_valid) j["valid_loss"] = e.valid_loss;
    for (const auto& [name, value] : e.metrics) j["valid_" + name] = value;
  }
  for (const auto& [name, value] : r.constant_guess) j["constant_guess"][name] = value;
  std::printf("%s\n", j.dump().c_str());
}

constexpr size_t kTraceEvents = 200000;

// Where the time went: the table on the terminal, every call in the trace file.
void report_profile(const TrainFlags& f, Training& t, const Profiler& p, uint64_t steps) {
  t.set_observer(nullptr);
  write_file(f.profile, p.chrome_trace());
  print_profile(p, Peak::measure(f.threads), int64_t(steps), 15);
  say("profile", cat(f.profile, "   open it in chrome://tracing or ui.perfetto.dev"));
}

// -v: what was set, and by whom.
void say_settings(const run::Settings& settings) {
  std::istringstream lines(settings.text());
  for (std::string line; std::getline(lines, line);)
    if (!line.ends_with("# default") && !line.starts_with("#")) say("setting", line);
}

// -v: which kernels ran, and why faster ones did not.
void say_kernels(const Training& t) {
  std::vector<NodeProfile> nodes;
  for (const Plan* p : t.plans())
    for (NodeProfile& n : describe_nodes(*p))
      if (!n.op.empty()) nodes.push_back(std::move(n));
  print_kernels(nodes);
}

// Planned and real memory.
void say_memory(const run::MemoryUse& m) {
  constexpr size_t kSmall = 1'000'000, kMiddle = 10'000'000;
  auto mb = [](size_t bytes) {
    return megabytes(bytes, bytes < kSmall ? 2 : bytes < kMiddle ? 1 : 0);
  };
  const PlannedMemory& p = m.planned;
  std::string line =
      cat(mb(p.state + p.arena), " planned (state ", mb(p.state), ", step ", mb(p.arena), ")");
  if (m.limit > 0)
    line += p.recomputed > 0 ? cat(", limit ", mb(m.limit), ": ", p.recomputed,
                                   " nodes recomputed, else ", mb(p.state + p.whole))
                             : cat(", limit ", mb(m.limit), ": nothing had to be recomputed");
  say("memory", cat(line, ", peak of the process ", mb(m.peak)));
  const std::vector<size_t>& each = m.shards.of_rank;
  if (each.empty()) return;
  const auto [least, most] = std::minmax_element(each.begin(), each.end());
  say("memory", cat("optimizer state ", megabytes(m.shards.bytes, 2),
                    " shared out: ", *least == *most ? "" : megabytes(*least, 2) + " to ",
                    megabytes(*most, 2), " in each of ", each.size(), " processes"));
  const std::vector<std::string>& whole = m.shards.whole;
  if (!whole.empty())
    say("memory", cat("not shared out: ", whole[0],
                      whole.size() > 1 ? cat(", and ", whole.size() - 1, " more") : ""));
}

// What only one process can do.
void check_processes(TrainFlags& f, const Communicator* c) {
  if (f.engine != "native" && (c || f.processes.cut.blocks > 1))
    usage_error("OT5008", "another engine makes its steps in one process, with whole batches",
                "without --engine, or one process without --micro-blocks");
  check_ending(f.profile, {".json"}, true, "--profile");
  if (!c && f.processes.cut.blocks <= 1 && f.resume.empty()) {
    if (f.processes.cut.batch_norm == "sync")
      say("note", "--batch-norm sync changes nothing: one process takes the whole batch at once");
    if (f.processes.cut.reduce_dtype == "bf16")
      say("note", "--reduce-dtype bf16 changes nothing: there is one process");
  }
  if (!c) return;
  if (f.find_lr || !f.profile.empty())
    usage_error("OT5008", "--find-lr and --profile are for one process",
                "onnxtrain train ... , without mpirun or launch");
  if (c->rank() > 0) f.progress = "none";
}

int train(TrainFlags& f) {
  on_signals(on_early_signal);
  auto borrowed = std::make_unique<run::Borrowed>();
  std::shared_ptr<run::Start> start;
  run::Settings settings = resolve(f, *borrowed, start);
  const Communicator* processes = f.processes.connect(f.threads);
  check_processes(f, processes);
  if (f.as_json && f.progress != "none") f.progress = "json";
  Progress progress(f.progress, f.fit.epochs);
  run::Request request = f.request();
  request.start = std::move(start);
  run::Run run(std::move(request), std::move(settings), progress);
  borrowed = nullptr;
  f.fit.epochs = run.options().epochs;
  progress.set_epochs(f.fit.epochs);
  say_plan(f, run);
  if (verbosity() > 0) say_settings(run.settings());
  if (f.find_lr) return search_lr(f, run);
  if (f.dry_run) return 0;
  on_signals(on_signal);
  if (f.engine != "native") run.set_engine(start_engine(f.engine, f.threads));
  run.open_folder(progress);
  Profiler profiler(kTraceEvents);
  const bool profiled = !f.profile.empty();
  if (profiled) run.training().set_observer(&profiler);
  const uint64_t before = run.at().step;
  const run::FitResult r = run.fit(stop_requested, profiled, progress);
  progress.finish();
  if (verbosity() > 0) say_kernels(run.training());
  say_memory(run.memory());
  if (profiled) report_profile(f, run.training(), profiler, r.at.step - before);
  if (!run.speaks()) {
    disconnect_processes();
    return r.interrupted ? 130 : 0;
  }
  const std::string folder = run.folder().path();
  disconnect_processes();
  if (r.interrupted) {
    say("stopped", cat("saved; go on with  onnxtrain train --resume ", shell_word(folder),
                       " --epochs ", f.fit.epochs));
    return 130;
  }
  run.release_training();  // what was written is read again and tried
  say_result(f, r, run.folder(), run.parts().train);
  if (f.as_json) print_result(r, run.folder());
  return 0;
}

}  // namespace

void add_train(Registry& r) {
  static TrainFlags f;
  CLI::App* c = f.add_to(r);
  r.on(c, [] { return train(f); });
}

}  // namespace onnxtrain::cli
