// demo: trains a sample from nothing, exports, evaluates, says what to try next.
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "cli/commands.hpp"
#include "cli/data_flags.hpp"
#include "cli/progress.hpp"
#include "data/sampler.hpp"
#include "onnx/onnx.hpp"
#include "train/run_folder.hpp"

namespace onnxtrain::cli {

namespace {

namespace fs = std::filesystem;

struct Sample {
  const char *name, *file, *text;
  int64_t epochs;
};
constexpr Sample kSamples[] = {
    {"cnn", "mnist/cnn.train.onnx", "MNIST, two convolutions and two dense layers", 2},
    {"mlp", "mnist/mlp.train.onnx", "MNIST, two dense layers", 3},
};

// The samples lie in the source tree beside the build, or where the package installed them.
fs::path samples_folder() {
  if (const char* e = std::getenv("ONNXTRAIN_SHARE")) return e;
  std::error_code ec;
  fs::path at = fs::read_symlink("/proc/self/exe", ec).parent_path();
  for (int up = 0; up < 5 && !at.empty(); ++up, at = at.parent_path())
    for (const char* sub : {"examples", "share/onnxtrain/examples"})
      if (fs::exists(at / sub / "mnist")) return at / sub;
  throw Error(ErrorKind::kFailed, "OT4401", "the sample files are not installed",
              "point ONNXTRAIN_SHARE to the folder 'examples' of the source tree");
}

int demo(const std::string& name) {
  const Sample* sample = nullptr;
  for (const Sample& s : kSamples)
    if (name == s.name) sample = &s;
  if (!sample)
    usage_error("OT0006", cat("there is no demo named '", name, "'"), "onnxtrain demo --list");
  fs::path folder = samples_folder(), file = folder / sample->file;
  std::string data = (folder / "mnist/data").string();
  say("model",
      cat(fs::relative(file).string(), "   ", sample->text, "; the file carries its own training"));
  auto model = std::make_shared<const Model>(load_model(file.string(), all_ops()));
  Training t(model, 0);
  DataFlags flags;
  LoadedData d = load_data(flags, data, t, DataPart::kTrain);
  say("data", d.line);
  Split split = split_rows(d.feeds.rows(), 0.1, 0, d.labels);
  FeedColumns train = d.feeds.subset(split.train), valid = d.feeds.subset(split.valid);
  say("split", cat(with_commas(train.rows()), " train   ", with_commas(valid.rows()),
                   " valid (10 %, stratified, seed 0)"));
  RunFolder run = RunFolder::create("runs", cat("demo-", name));
  FitOptions o;
  o.epochs = sample->epochs;
  o.batch = 32;
  o.folder = run.path();
  say("run", run.path());
  Progress progress("auto", o.epochs);
  o.metadata = d.metadata;
  fit(t, train, &valid, o, Position{}, progress);
  progress.finish();
  say("saved", cat(run.model(), "   inference model, runs in any ONNX runtime"));
  LoadedData test = load_data(flags, data, t, DataPart::kTest);
  Metrics m = Evaluator(t).evaluate(test.feeds, 256);
  std::printf("test accuracy %s on %s images it has never seen\n",
              format_metric("accuracy", m.values()[0].second).c_str(),
              with_commas(test.feeds.rows()).c_str());
  say("next", cat("onnxtrain train --resume ", run.path(), " --epochs ", o.epochs + 2,
                  "      onnxtrain info ", fs::relative(file).string()));
  return 0;
}

}  // namespace

void add_demo(Registry& r) {
  static std::string name = "cnn";
  static bool list = false;
  CLI::App* c = r.add("demo", "train the MNIST example, export and evaluate it; needs no network",
                      "  onnxtrain demo\n  onnxtrain demo mlp");
  c->add_option("NAME", name, "which example (--list names them)");
  c->add_flag("--list", list, "the demos there are");
  r.on(c, [] {
    if (!list) return demo(name);
    for (const Sample& s : kSamples) std::printf("%-6s %s\n", s.name, s.text);
    return 0;
  });
}

}  // namespace onnxtrain::cli
