// A run as data for the page, from the files of its folder.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <sstream>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/file.hpp"
#include "run/folder/epoch_log.hpp"
#include "run/metrics/metrics.hpp"
#include "run/report/list.hpp"
#include "run/report/report.hpp"

namespace onnxtrain::run {

namespace {

using nlohmann::ordered_json;
namespace fs = std::filesystem;

std::string content_of(const std::string& path) {
  return fs::exists(path) ? read_file(path, 64 << 20) : std::string();
}

ordered_json json_in(const std::string& path) {
  return ordered_json::parse(content_of(path), nullptr, false);
}

// config.toml line by line: `key = value   # source`.
ordered_json settings_of_run(const std::string& path) {
  ordered_json list = ordered_json::array();
  std::istringstream in(content_of(path));
  for (std::string line; std::getline(in, line);) {
    const size_t equals = line.find(" = "), comment = line.rfind("  # ");
    if (line.starts_with("#") || equals == std::string::npos || comment == std::string::npos ||
        comment < equals)
      continue;
    std::string value = line.substr(equals + 3, comment - equals - 3);
    value.erase(value.find_last_not_of(' ') + 1);
    list.push_back(
        {{"key", line.substr(0, equals)}, {"value", value}, {"source", line.substr(comment + 4)}});
  }
  return list;
}

ordered_json class_names(const ordered_json& card) {
  if (!card.is_object() || !card.contains("onnxtrain.classes")) return ordered_json::array();
  auto list = ordered_json::parse(std::string(card["onnxtrain.classes"]), nullptr, false);
  return list.is_array() ? list : ordered_json::array();
}

// Seconds since something was written there.
double age_of(const std::string& folder) {
  std::error_code none;
  auto newest = fs::file_time_type::min();
  for (const char* file : {"metrics.jsonl", "env.json", "checkpoints/last.train.onnx"})
    if (auto t = fs::last_write_time(folder + "/" + file, none); !none)
      newest = std::max(newest, t);
  if (newest == fs::file_time_type::min()) return 0;
  return std::chrono::duration<double>(fs::file_time_type::clock::now() - newest).count();
}

}  // namespace

ordered_json report_data(const Folder& run, bool details) {
  const std::string& at = run.path();
  const Summary s = summary_of(at);
  const ordered_json card = json_in(at + "/data.json"), env = json_in(at + "/env.json");
  fs::path name = fs::path(at).lexically_normal();
  if (name.filename().empty()) name = name.parent_path();
  if (std::error_code none; fs::is_symlink(name, none)) name = fs::read_symlink(name, none);
  ordered_json j{{"name", name.filename().string()},
                 {"epochs", epoch_lines(at)},
                 {"metric", s.metric},
                 {"best", s.best},
                 {"best_epoch", s.best_epoch},
                 {"larger_is_better",
                  s.metric.starts_with("valid_") && Metrics::larger_is_better(s.metric.substr(6))},
                 {"settings", settings_of_run(run.config())},
                 {"environment", env.is_object() ? env : ordered_json::object()},
                 {"ended", env.is_object() && env.contains("memory")},
                 {"age_seconds", age_of(at)}};
  if (!details) return j;
  j["classes"] = class_names(card);
  for (const char* part : {"confusion", "operators", "predictions"})
    if (ordered_json v = json_in(cat(at, "/", part, ".json")); !v.is_discarded())
      j[part] = std::move(v);
  if (j.contains("confusion") && s.best_epoch > 0)
    j["confusion_title"] = cat("Confusion of epoch ", s.best_epoch, ", the best");
  if (card.is_object()) j["data"] = card;
  j["command"] = content_of(at + "/command.txt");
  return j;
}

}  // namespace onnxtrain::run
