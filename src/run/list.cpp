// Summaries from the logs of runs.
#include "run/list.hpp"

#include <algorithm>
#include <filesystem>

#include "run/epoch_log.hpp"
#include "run/metrics.hpp"

namespace onnxtrain::run {

namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// The first metric on validation data, its loss, or the training loss.
std::string watched(const ordered_json& line) {
  for (const auto& [key, value] : line.items())
    if (key.starts_with("valid_") && key != "valid_loss") return key;
  return line.contains("valid_loss") ? "valid_loss" : "train_loss";
}

Summary summary(const std::string& folder) {
  Summary s;
  s.folder = folder;
  for (const ordered_json& j : epoch_lines(folder)) {
    if (s.metric.empty()) s.metric = watched(j);
    const double v = j.value(s.metric, 0.0);
    const bool larger =
        s.metric.starts_with("valid_") && Metrics::larger_is_better(s.metric.substr(6));
    s.epochs = j.value("epoch", int64_t(0));
    s.train_loss = j.value("train_loss", 0.0);
    // logs of older versions do not say which epoch was the best
    if (j.contains("best") || s.best_epoch == 0 || (larger ? v > s.best : v < s.best)) {
      s.best = v;
      s.best_epoch = s.epochs;
    }
  }
  return s;
}

}  // namespace

std::vector<Summary> list_runs(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code ec;
  for (const auto& entry : fs::directory_iterator(folder, ec))
    if (!entry.is_symlink() && fs::exists(entry.path() / "checkpoints"))
      found.push_back(entry.path().string());
  std::sort(found.begin(), found.end());
  std::vector<Summary> all;
  for (const std::string& run : found) all.push_back(summary(run));
  return all;
}

}  // namespace onnxtrain::run
