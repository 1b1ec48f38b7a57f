// runs and report: what has been trained.
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/progress.hpp"
#include "core/error.hpp"
#include "run/list.hpp"
#include "run/report.hpp"

namespace onnxtrain::cli {

namespace {

using nlohmann::ordered_json;

ordered_json to_json(const run::Summary& s) {
  ordered_json j{{"run", s.folder}, {"epochs", s.epochs}};
  if (s.metric.empty()) return j;
  j["train_loss"] = s.train_loss;
  j["metric"] = s.metric;
  j["best"] = s.best;
  j["best_epoch"] = s.best_epoch;
  return j;
}

int list_runs(const std::string& folder, bool as_json) {
  if (!std::filesystem::is_directory(folder) && folder != "runs")
    throw Error(ErrorKind::kFailed, "OT4001", cat("there is no folder '", folder, "'"),
                "onnxtrain runs   lists those in runs/");
  const std::vector<run::Summary> all = run::list_runs(folder);
  if (as_json) {
    ordered_json list = ordered_json::array();
    for (const run::Summary& s : all) list.push_back(to_json(s));
    std::printf("%s\n", list.dump(2).c_str());
    return 0;
  }
  if (all.empty()) say("runs", cat("none in '", folder, "'"));
  for (const run::Summary& s : all) {
    if (s.metric.empty()) {
      std::printf("%-28s no finished epoch\n", s.folder.c_str());
      continue;
    }
    const std::string bare = s.metric.starts_with("valid_") ? s.metric.substr(6) : s.metric;
    std::printf("%-28s %4d epochs   train loss %-9.4g best %s %s (epoch %d)\n", s.folder.c_str(),
                int(s.epochs), s.train_loss, s.metric.c_str(), format_metric(bare, s.best).c_str(),
                int(s.best_epoch));
  }
  return 0;
}

int report(const std::string& path, const std::string& to) {
  checkpoint_of(path, "last");  // an error when it is no run
  const std::string file = to.empty() ? path + "/report.html" : to;
  const run::Folder folder(path);
  if (to.empty()) {
    folder.write_text("report.html", run::run_report(folder));
  } else {  // perhaps no ordinary file
    std::ofstream out(to, std::ios::binary);
    out << run::run_report(folder);
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
