// runs and report: what has been trained.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <numeric>

#include <nlohmann/json.hpp>

#include "cli/common/commands.hpp"
#include "cli/flags/output_file.hpp"
#include "cli/print/progress.hpp"
#include "core/error.hpp"
#include "run/metrics/metrics.hpp"
#include "run/report/list.hpp"
#include "run/report/report.hpp"

namespace onnxtrain::cli {

namespace {

using nlohmann::ordered_json;

using KeyValues = std::vector<std::pair<std::string, std::string>>;

ordered_json to_json(const run::Summary& s, const KeyValues& settings) {
  ordered_json j{{"run", s.folder}, {"epochs", s.epochs}};
  if (!s.metric.empty()) {
    j["train_loss"] = s.train_loss;
    j["metric"] = s.metric;
    j["best"] = s.best;
    j["best_epoch"] = s.best_epoch;
  }
  if (!settings.empty()) j["settings"] = ordered_json(std::map(settings.begin(), settings.end()));
  return j;
}

std::string bare_metric(const std::string& metric) {
  return metric.starts_with("valid_") ? metric.substr(6) : metric;
}

void print_run(const run::Summary& s, const KeyValues& settings) {
  if (s.metric.empty())
    std::printf("%-28s no finished epoch", s.folder.c_str());
  else
    std::printf("%-28s %4d epochs   train loss %-9.4g best %s %s (epoch %d)", s.folder.c_str(),
                int(s.epochs), s.train_loss, s.metric.c_str(),
                format_metric(bare_metric(s.metric), s.best).c_str(), int(s.best_epoch));
  for (const auto& [key, value] : settings) std::printf("   %s=%s", key.c_str(), value.c_str());
  std::printf("\n");
}

// Places in the order that was asked for; runs without an epoch come last.
std::vector<size_t> sorted(const std::vector<run::Summary>& all, const std::string& by) {
  std::vector<size_t> order(all.size());
  std::iota(order.begin(), order.end(), size_t(0));
  auto key = [&](size_t k) {
    const run::Summary& s = all[k];
    if (s.metric.empty()) return std::numeric_limits<double>::infinity();
    if (by == "loss") return s.train_loss;
    if (by == "epochs") return -double(s.epochs);
    const bool larger =
        s.metric != "train_loss" && run::Metrics::larger_is_better(bare_metric(s.metric));
    return larger ? -s.best : s.best;
  };
  if (by != "name")
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return key(a) < key(b); });
  return order;
}

int list_runs(const std::string& folder, const std::string& by, bool as_json) {
  if (!std::filesystem::is_directory(folder) && folder != "runs")
    throw Error(ErrorKind::kFailed, "OT4001", cat("there is no folder '", folder, "'"),
                "onnxtrain runs   lists those in runs/");
  const std::vector<run::Summary> all = run::list_runs(folder);
  std::vector<std::string> folders;
  for (const run::Summary& s : all) folders.push_back(s.folder);
  const std::vector<KeyValues> settings = run::differing_settings(folders);
  const std::vector<size_t> order = sorted(all, by);
  if (as_json) {
    ordered_json list = ordered_json::array();
    for (size_t k : order) list.push_back(to_json(all[k], settings[k]));
    std::printf("%s\n", list.dump(2).c_str());
    return 0;
  }
  if (all.empty()) say("runs", cat("none in '", folder, "'"));
  for (size_t k : order) print_run(all[k], settings[k]);
  return 0;
}

int report(const std::vector<std::string>& paths, std::string to) {
  for (const std::string& path : paths) checkpoint_of(path, "last");  // an error when it is no run
  for (const std::string& path : paths)
    if (!std::filesystem::exists(path))
      throw Error(ErrorKind::kCheckpoint, "OT4102", cat("there is no run folder '", path, "'"),
                  "onnxtrain runs   lists the runs there are");
  for (const std::string& path : paths)
    if (!std::filesystem::is_directory(path))
      throw Error(ErrorKind::kCheckpoint, "OT4102", cat("'", path, "' is a file, not a run folder"),
                  "onnxtrain runs   lists the runs there are");
  const bool one = paths.size() == 1;
  if (to.empty() && one) {
    const run::Folder folder(paths[0]);
    folder.write_text("report.html", run::run_report(folder));
    std::printf("%s\n", (paths[0] + "/report.html").c_str());
    return 0;
  }
  if (to.empty()) to = "report.html";
  std::ofstream out(to, std::ios::binary);  // perhaps no ordinary file
  out << run::run_report(paths);
  if (!out.flush()) throw Error(ErrorKind::kFailed, "OT4011", cat("cannot write '", to, "'"));
  std::printf("%s\n", to.c_str());
  return 0;
}

}  // namespace

void add_runs(Registry& r) {
  static std::string folder = "runs", by = "name";
  static bool as_json = false;
  CLI::App* c = r.add("runs", "list runs, their progress and the settings that differ",
                      "  onnxtrain runs\n  onnxtrain runs elsewhere/ --sort best");
  c->add_option("FOLDER", folder, "where the runs lie");
  c->add_option("--sort", by, "name|best|loss|epochs: the best first")
      ->check(CLI::IsMember({"name", "best", "loss", "epochs"}));
  c->add_flag("--json", as_json, "machine-readable");
  r.on(c, [] { return list_runs(folder, by, as_json); });
}

void add_report(Registry& r) {
  static std::vector<std::string> paths;
  static std::string to;
  CLI::App* c = r.add(
      "report", "report.html: curves, confusion, predictions, data, settings; several runs at once",
      "  onnxtrain report runs/cnn-001\n  onnxtrain report runs/cnn-001 runs/cnn-002 -o both.html");
  c->add_option("RUN", paths, "run folders; several: their curves over each other")->required();
  c->add_option("-o,--output", to,
                "another file than RUN/report.html (several runs: report.html here)");
  r.on(c, [] {
    check_ending(to, {".html", ".htm"}, true);
    return report(paths, to);
  });
}

}  // namespace onnxtrain::cli
