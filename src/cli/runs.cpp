// runs and report: what has been trained.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/progress.hpp"
#include "train/report.hpp"

namespace onnxtrain::cli {

namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// Last line of the log, and the best value of its first metric.
ordered_json summary(const std::string& folder) {
  ordered_json last, run{{"run", folder}, {"epochs", 0}};
  std::ifstream in(folder + "/metrics.jsonl");
  std::string metric;
  double best = 0;
  int64_t best_epoch = 0;
  for (std::string line; std::getline(in, line);) {
    auto j = ordered_json::parse(line, nullptr, false);
    if (!j.is_object()) continue;
    if (metric.empty()) {
      metric = j.contains("valid_loss") ? "valid_loss" : "train_loss";
      for (const auto& [key, value] : j.items())
        if (key.starts_with("valid_") && key != "valid_loss" && metric == "valid_loss")
          metric = key;
    }
    double v = j.value(metric, 0.0);
    bool larger = metric.starts_with("valid_") && Metrics::larger_is_better(metric.substr(6));
    if (best_epoch == 0 || (larger ? v > best : v < best)) {
      best = v;
      best_epoch = j.value("epoch", int64_t(0));
    }
    last = j;
  }
  if (last.is_object()) {
    run["epochs"] = last["epoch"];
    run["train_loss"] = last["train_loss"];
    run["metric"] = metric;
    run["best"] = best;
    run["best_epoch"] = best_epoch;
  }
  return run;
}

int list_runs(const std::string& folder, bool as_json) {
  std::vector<std::string> found;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(folder, ec))
    if (!entry.is_symlink() && fs::exists(entry.path() / "checkpoints"))
      found.push_back(entry.path().string());
  std::sort(found.begin(), found.end());
  ordered_json all = ordered_json::array();
  for (const std::string& run : found) all.push_back(summary(run));
  if (as_json) {
    std::printf("%s\n", all.dump(2).c_str());
    return 0;
  }
  if (all.empty()) say("runs", cat("none in '", folder, "'"));
  for (const auto& r : all) {
    std::string name = r["run"];
    if (!r.contains("metric")) {
      std::printf("%-28s no finished epoch\n", name.c_str());
      continue;
    }
    std::string metric = r["metric"], bare = metric;
    if (bare.starts_with("valid_")) bare = bare.substr(6);
    std::printf("%-28s %4d epochs   train loss %-9.4g best %s %s (epoch %d)\n", name.c_str(),
                int(r["epochs"]), double(r["train_loss"]), metric.c_str(),
                format_metric(bare, r["best"]).c_str(), int(r["best_epoch"]));
  }
  return 0;
}

int report(const std::string& path, const std::string& to) {
  checkpoint_of(path, "last");  // an error when it is no run
  RunFolder run(path);
  std::string file = to.empty() ? path + "/report.html" : to;
  std::string html = run_report(run);
  if (to.empty()) {
    run.write_text("report.html", html);
  } else {
    std::ofstream out(to, std::ios::binary);
    out << html;
    if (!out.flush()) throw Error(ErrorKind::kFailed, "OT4011", cat("cannot write '", to, "'"));
  }
  std::printf("%s\n", file.c_str());
  return 0;
}

}  // namespace

void add_runs(Registry& r) {
  static std::string folder = "runs";
  static bool as_json = false;
  CLI::App* c = r.add("runs", "list runs and their progress",
                      "  onnxtrain runs\n  onnxtrain runs elsewhere/ --json");
  c->add_option("FOLDER", folder, "where the runs lie");
  c->add_flag("--json", as_json, "machine-readable");
  r.on(c, [] { return list_runs(folder, as_json); });
}

void add_report(Registry& r) {
  static std::string path, to;
  CLI::App* c = r.add("report", "report.html of a run: curves, table, confusion, data, settings",
                      "  onnxtrain report runs/cnn-001\n  onnxtrain report runs/latest -o r.html");
  c->add_option("RUN", path, "a run folder")->required();
  c->add_option("-o,--output", to, "another file than RUN/report.html");
  r.on(c, [] { return report(path, to); });
}

}  // namespace onnxtrain::cli
