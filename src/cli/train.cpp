// train and eval.
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include "cli/commands.hpp"
#include "cli/data_flags.hpp"
#include "cli/profile_table.hpp"
#include "cli/progress.hpp"
#include "cli/recipe_flags.hpp"
#include "core/file.hpp"
#include "core/version.hpp"
#include "data/sampler.hpp"
#include "onnx/onnx.hpp"
#include "train/run_folder.hpp"

namespace onnxtrain::cli {

namespace {

std::atomic<int> stop_requested{0};

// The first signal finishes the step and saves, the second leaves at once.
void on_signal(int) {
  if (stop_requested.fetch_add(1) >= 1) _exit(130);
}

struct TrainFlags {
  std::string model, valid = "0.1", out, resume, progress = "auto", profile;
  DataFlags data;
  RecipeFlags recipe;
  FitOptions fit;
  uint64_t seed = 0;
  int threads = 0;
  bool quiet = false, dry_run = false, no_shuffle = false;
  CLI::App* app = nullptr;
};

// Position, model and folder of the run to go on with.
struct Start {
  std::shared_ptr<const Model> model;
  Position at;
  std::string folder, name;
};

Start resume_from(const TrainFlags& f) {
  Start s;
  s.folder = f.resume;
  std::string path = f.resume;
  if (std::filesystem::is_directory(path))
    path = RunFolder(f.resume).last();
  else
    s.folder.clear();
  s.model = std::make_shared<const Model>(load_checkpoint(path, s.at));
  return s;
}

Start begin(const TrainFlags& f, int64_t steps) {
  Start s;
  s.at.seed = f.seed;
  s.name = std::filesystem::path(f.model).stem().string();
  if (size_t dot = s.name.find(".train"); dot != std::string::npos) s.name.resize(dot);
  Model m = load_model(f.model, all_ops());
  if (is_checkpoint(m)) {
    s.model = std::make_shared<const Model>(load_checkpoint(f.model, s.at));
    return s;
  }
  if (!m.training.empty()) {
    if (f.recipe.any_given())
      usage_error(
          "OT0004",
          cat("'", f.model,
              "' carries its own training: flags that describe another one do not apply"),
          "remove them, or take the inference part first:  onnxtrain export MODEL -o plain.onnx");
    s.model = std::make_shared<const Model>(std::move(m));
    return s;
  }
  Recipe r = f.recipe.recipe(f.seed, steps);
  if (r.losses[0].kind == "auto") {
    LossChoice c = choose_loss(m, r.losses[0].output);
    say("loss", cat(c.kind, ", because ", c.because, "   (--loss to change)"));
  } else {
    say("loss", r.losses[0].kind);
  }
  s.model = std::make_shared<const Model>(prepare(m, r, all_ops()));
  return s;
}

std::string config_text(const TrainFlags& f) { return f.app->config_to_str(true, false); }

constexpr size_t kTraceEvents = 200000;

// Where the time went: the table on the terminal, every call in the trace file.
void report_profile(const TrainFlags& f, Training& t, const Profiler& p, uint64_t steps) {
  t.set_observer(nullptr);
  write_file(f.profile, p.chrome_trace());
  print_profile(p.nodes(), Roof::measure(f.threads), int64_t(steps), 15);
  say("profile", cat(f.profile, "   open it in chrome://tracing or ui.perfetto.dev"));
}

int train(TrainFlags& f) {
  set_quiet(f.quiet);
  bool resuming = !f.resume.empty();
  if (!resuming && f.model.empty()) usage_error("OT0005", "train needs a MODEL or --resume RUN");
  if (resuming && f.data.data.empty()) {
    std::string saved = std::filesystem::is_directory(f.resume) ? f.resume + "/data.txt" : "";
    if (!saved.empty() && std::filesystem::exists(saved)) f.data.data = read_file(saved, 1 << 16);
    while (!f.data.data.empty() && f.data.data.back() == '\n') f.data.data.pop_back();
  }
  if (f.data.data.empty()) usage_error("OT0005", "train needs --data");
  Start s = resuming ? resume_from(f) : begin(f, 0);
  ProgramOptions po;
  po.threads = f.threads;
  Training training(s.model, s.at.seed, po);
  LoadedData data = load_data(f.data, f.data.data, training, DataPart::kTrain);
  say("data", data.line);
  // a schedule that spans the run needs its length: now it is known
  FeedColumns train = data.feeds, valid;
  bool has_valid = false;
  char* end = nullptr;
  double fraction = std::strtod(f.valid.c_str(), &end);
  if (*end == '\0') {
    if (fraction > 0) {
      Split split = split_rows(train.rows(), fraction, s.at.seed, data.labels);
      valid = train.subset(split.valid);
      train = train.subset(split.train);
      has_valid = true;
      say("split", cat(with_commas(train.rows()), " train   ", with_commas(valid.rows()),
                       " valid (", fraction * 100, " %", data.labels.empty() ? "" : ", stratified",
                       ", seed ", s.at.seed, ")"));
    }
  } else {
    LoadedData v = load_data(f.data, f.valid, training, DataPart::kTest);
    valid = v.feeds;
    has_valid = true;
    say("valid", v.line);
  }
  int64_t batches = (train.rows() + f.fit.batch - 1) / f.fit.batch;
  say("plan", cat(resuming ? std::string("as the file says")
                  : s.model->metadata.count("onnxtrain.optimizer")
                      ? s.model->metadata.at("onnxtrain.optimizer")
                      : "as the file says",
                  training.has_rate() ? cat(" lr ", training.rate()) : "", ", batch ", f.fit.batch,
                  ", ", f.fit.epochs, " epochs = ", with_commas(batches * f.fit.epochs), " steps, ",
                  training.pool().threads(), " threads"));
  if (f.dry_run) return 0;
  RunFolder folder = !f.out.empty() ? RunFolder::open(f.out)
                     : !s.folder.empty()
                         ? RunFolder::open(s.folder)
                         : RunFolder::create("runs", s.name.empty() ? "model" : s.name);
  say("run", folder.path());
  folder.write_text("config.toml", config_text(f));
  folder.write_text("data.txt", std::filesystem::exists(f.data.data)
                                    ? std::filesystem::absolute(f.data.data).string()
                                    : f.data.data);
  f.fit.folder = folder.path();
  f.fit.shuffle = !f.no_shuffle;
  f.fit.stop = &stop_requested;
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  Progress progress(f.progress, f.fit.epochs);
  Profiler profiler(kTraceEvents);
  if (!f.profile.empty()) training.set_observer(&profiler);
  FitResult r = fit(training, train, has_valid ? &valid : nullptr, f.fit, s.at, progress);
  progress.finish();
  if (!f.profile.empty()) report_profile(f, training, profiler, r.at.step - s.at.step);
  if (r.interrupted) {
    say("stopped", cat("saved; go on with  onnxtrain train --resume ", folder.path(), " --epochs ",
                       f.fit.epochs));
    return 130;
  }
  for (const EpochResult& e : r.epochs)
    if (e.epoch == r.best_epoch && !e.metrics.empty())
      say("best", cat("epoch ", e.epoch, ": valid ", e.metrics[0].first, " ",
                      format_metric(e.metrics[0].first, e.metrics[0].second),
                      r.constant_guess > 0 ? cat("; a constant guess gives ",
                                                 std::round(r.constant_guess * 10) / 10, " %")
                                           : ""));
  if (std::filesystem::exists(folder.model()))
    say("saved", cat(folder.model(), "   inference model (best)"));
  say("next", cat("onnxtrain eval ", folder.path(), " --data ", f.data.data,
                  "    onnxtrain train --resume ", folder.path(), " --epochs ", f.fit.epochs * 2));
  return 0;
}

int eval(const std::string& what, const DataFlags& flags, int64_t batch, int threads,
         bool test_part) {
  std::string path = what;
  if (std::filesystem::is_directory(what)) path = RunFolder(what).best();
  Model m = load_model(path, all_ops());
  if (m.training.empty()) m = prepare(m, Recipe{}, all_ops());
  ProgramOptions po;
  po.threads = threads;
  Training t(std::make_shared<const Model>(std::move(m)), 0, po);
  LoadedData data = load_data(flags, flags.data, t, test_part ? DataPart::kTest : DataPart::kTrain);
  say("data", data.line);
  Metrics metrics = Evaluator(t).evaluate(data.feeds, batch);
  std::printf("loss      %.6g\n", metrics.loss());
  for (const auto& [name, value] : metrics.values())
    std::printf("%-9s %s\n", name.c_str(), format_metric(name, value).c_str());
  return 0;
}

}  // namespace

void add_train(Registry& r) {
  static TrainFlags f;
  CLI::App* c =
      r.add("train", "trains either kind of file",
            "  onnxtrain train cnn.onnx --data mnist/ --epochs 3\n"
            "  onnxtrain train mlp.onnx --data data.npz --loss mse --optimizer sgd --lr 0.01\n"
            "  onnxtrain train --resume runs/cnn-001 --epochs 6");
  f.app = c;
  c->add_option("MODEL", f.model, "an ONNX file, with or without training inside");
  f.data.add_to(c, false);
  c->add_option("--valid", f.valid, "a fraction of the data, or another file; 0: none")
      ->group("Data");
  c->add_flag("--no-shuffle", f.no_shuffle)->group("Data");
  c->add_option("--epochs", f.fit.epochs)->check(CLI::PositiveNumber);
  c->add_option("--batch", f.fit.batch)->check(CLI::PositiveNumber);
  c->add_option("--steps", f.fit.max_steps, "stop after this many steps");
  c->add_option("--time", f.fit.max_seconds, "stop after this many seconds");
  c->add_option("--patience", f.fit.patience, "stop after this many epochs without improvement");
  f.recipe.add_to(c);
  c->add_option("--out", f.out, "run folder (default runs/MODEL-NNN)")->group("Run");
  c->add_option("--resume", f.resume, "go on with a run or checkpoint")->group("Run");
  c->add_option("--save-every", f.fit.save_every, "steps between checkpoints")->group("Run");
  c->add_option("--seed", f.seed)->group("Run");
  c->add_option("--threads", f.threads)->group("Run");
  c->add_option("--progress", f.progress, "auto|bar|lines|json|none")
      ->check(CLI::IsMember({"auto", "bar", "lines", "json", "none"}))
      ->group("Run");
  c->add_option("--profile", f.profile, "write a Chrome trace there, print where the time went")
      ->group("Run");
  c->add_flag("-q,--quiet", f.quiet)->group("Run");
  c->add_flag("--dry-run", f.dry_run, "say what would be done")->group("Run");
  r.on(c, [] { return train(f); });
}

void add_eval(Registry& r) {
  static std::string what;
  static DataFlags data;
  static int64_t batch = 256;
  static int threads = 0;
  static std::string part = "test";
  CLI::App* c = r.add("eval", "loss and metrics of a run or model",
                      "  onnxtrain eval runs/cnn-001 --data mnist/");
  c->add_option("RUN|MODEL", what)->required();
  data.add_to(c);
  c->add_option("--batch", batch);
  c->add_option("--threads", threads);
  c->add_option("--part", part, "test|train: which part of a source that has both")
      ->check(CLI::IsMember({"test", "train"}));
  r.on(c, [] { return eval(what, data, batch, threads, part == "test"); });
}

}  // namespace onnxtrain::cli
