// Summaries from the logs of runs.
#include "run/report/list.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <set>

#include "run/folder/epoch_log.hpp"
#include "run/folder/settings.hpp"
#include "run/metrics/metrics.hpp"

namespace onnxtrain::run {

namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// NaN where a loss was none (null in the log).
double number_in(const ordered_json& line, const std::string& key) {
  const auto at = line.find(key);
  if (at == line.end()) return 0;
  return at->is_number() ? at->get<double>() : std::numeric_limits<double>::quiet_NaN();
}

// What the line says; else the first metric on validation data, its loss, or the training loss.
std::string watched(const ordered_json& line) {
  if (const auto said = line.find("watched"); said != line.end() && said->is_string()) return *said;
  for (const auto& [key, value] : line.items())
    if (key.starts_with("valid_") && key != "valid_loss") return key;
  return line.contains("valid_loss") ? "valid_loss" : "train_loss";
}

}  // namespace

Summary summary_of(const std::string& folder) {
  Summary s;
  s.folder = folder;
  for (const ordered_json& j : epoch_lines(folder)) {
    if (s.metric.empty()) s.metric = watched(j);
    const double v = number_in(j, s.metric);
    const bool larger =
        s.metric.starts_with("valid_") && Metrics::larger_is_better(s.metric.substr(6));
    s.epochs = j.value("epoch", int64_t(0));
    s.train_loss = number_in(j, "train_loss");
    // logs of older versions do not say which epoch was the best
    if (j.contains("best") || s.best_epoch == 0 || (larger ? v > s.best : v < s.best)) {
      s.best = v;
      s.best_epoch = s.epochs;
    }
  }
  return s;
}

std::vector<std::string> runs_in(const std::string& folder) {
  std::error_code ec;
  auto is_run = [&](const fs::path& p) { return fs::exists(p / "checkpoints", ec); };
  if (is_run(folder)) return {folder};
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder, ec))
    if (!entry.is_symlink(ec) && is_run(entry.path())) found.push_back(entry.path().string());
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::vector<std::pair<std::string, std::string>>> differing_settings(
    const std::vector<std::string>& runs) {
  std::vector<std::map<std::string, std::string>> all;
  std::set<std::string> keys;
  for (const std::string& run : runs) {
    all.push_back(settings_in(run + "/config.toml"));
    for (const auto& [key, value] : all.back()) keys.insert(key);
  }
  std::vector<std::vector<std::pair<std::string, std::string>>> out(runs.size());
  for (const std::string& key : keys) {
    if (is_about_look(key) || key == "out" || key == "resume") continue;
    std::set<std::string> values;  // a run of an earlier version, or of Python's, lacks some
    for (const auto& settings : all)
      if (auto it = settings.find(key); it != settings.end()) values.insert(it->second);
    if (values.size() < 2) continue;
    for (size_t k = 0; k < all.size(); ++k)
      if (all[k].count(key)) out[k].push_back({key, unquoted(all[k].at(key))});
  }
  return out;
}

std::vector<Summary> list_runs(const std::string& folder) {
  std::vector<Summary> all;
  for (const std::string& run : runs_in(folder)) all.push_back(summary_of(run));
  return all;
}

}  // namespace onnxtrain::run
