// demo: trains a sample from nothing, exports, evaluates, says what to try next.
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "cli/common/commands.hpp"
#include "cli/print/progress.hpp"
#include "core/file.hpp"
#include "run/run.hpp"

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

// From here when that is short, otherwise from the root.
std::string shown_path(const fs::path& file) {
  const std::string near = fs::relative(file).string();
  return near.starts_with("../..") ? file.string() : near;
}

// Packages carry a part of the images; the line that says which, or "".
std::string subset_of(const fs::path& data) {
  const fs::path said = data / "subset.txt";
  if (!fs::exists(said)) return {};
  std::string text = read_file(said.string(), 1000);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// So that the run can be resumed without saying more.
run::Settings settings_of(const run::Request& q) {
  using Kind = run::Settings::Kind;
  run::Settings s;
  s.add({"data", Kind::kText, false, "", {}});
  s.add({"valid", Kind::kText, false, q.data.valid, {}});
  s.add({"epochs", Kind::kNumber, false, std::to_string(q.fit.epochs), {}});
  s.add({"batch", Kind::kNumber, false, std::to_string(q.fit.batch), {}});
  s.set("data", {q.data.data}, "demo");
  return s;
}

int demo(const std::string& name, bool as_json) {
  const Sample* sample = nullptr;
  for (const Sample& s : kSamples)
    if (name == s.name) sample = &s;
  if (!sample)
    usage_error("OT0006", cat("there is no demo named '", name, "'"), "onnxtrain demo --list");
  fs::path folder = samples_folder(), file = folder / sample->file;
  std::string data = (folder / "mnist/data").string();
  const std::string subset = subset_of(data);
  say("model", cat(shown_path(file), "   ", sample->text, "; the file carries its own training"));
  if (!subset.empty()) say("sample", subset);
  run::Request q;
  q.model = file.string();
  q.name = cat("demo-", name);
  q.data.data = data;
  q.fit.epochs = sample->epochs * (subset.empty() ? 1 : 3);
  q.fit.batch = 32;
  Progress progress("auto", q.fit.epochs);
  run::Run r(q, settings_of(q), progress);
  r.open_folder(progress);
  const std::atomic<int> never{0};
  r.fit(never, false, progress);
  progress.finish();
  say("saved", cat(r.folder().model(), "   inference model, runs in any ONNX runtime"));
  const Training& t = r.training();
  const run::LoadedData test =
      run::load_data(data, q.data, t.source(), t.slots(), DataPart::kTest, {});
  const run::Metrics m = run::Evaluator(r.training()).evaluate(test.feeds, 256);
  if (as_json)
    std::printf("%s\n", nlohmann::ordered_json{{"run", r.folder().path()},
                                               {"model", r.folder().model()},
                                               {"test_accuracy", m.values()[0].second},
                                               {"rows", test.feeds.rows()}}
                            .dump()
                            .c_str());
  else
    std::printf("test accuracy %s on %s images it has never seen\n",
                format_metric("accuracy", m.values()[0].second).c_str(),
                with_commas(test.feeds.rows()).c_str());
  say("next", cat("onnxtrain train --resume ", r.folder().path(), " --epochs ", q.fit.epochs + 2,
                  "      onnxtrain info ", shown_path(file)));
  return 0;
}

}  // namespace

void add_demo(Registry& r) {
  static std::string name = "cnn";
  static bool list = false, as_json = false;
  CLI::App* c = r.add("demo", "train the MNIST example, export and evaluate it; needs no network",
                      "  onnxtrain demo\n  onnxtrain demo mlp");
  c->add_option("NAME", name, "which example (--list names them)");
  c->add_flag("--list", list, "the demos there are");
  c->add_flag("--json", as_json, "the result, machine-readable");
  r.on(c, [] {
    if (!list) return demo(name, as_json);
    for (const Sample& s : kSamples) std::printf("%-6s %s\n", s.name, s.text);
    return 0;
  });
}

}  // namespace onnxtrain::cli
