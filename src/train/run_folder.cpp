// Run folders on disk.
#include "train/run_folder.hpp"

#include <cstdio>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "core/file.hpp"
#include "train/fit.hpp"

namespace onnxtrain {

namespace fs = std::filesystem;

RunFolder RunFolder::create(const std::string& parent, const std::string& name) {
  std::error_code ec;
  fs::create_directories(parent, ec);
  for (int n = 1; n < 1'000'000; ++n) {
    char suffix[16];
    std::snprintf(suffix, sizeof suffix, "-%03d", n);
    std::string path = parent + "/" + name + suffix;
    if (!fs::create_directory(path, ec)) {
      if (ec)
        throw Error(ErrorKind::kFailed, "OT4101",
                    cat("cannot make the run folder '", path, "': ", ec.message()),
                    "choose another place:  --out FOLDER");
      continue;
    }
    fs::create_directories(path + "/checkpoints");
    fs::path latest = fs::path(parent) / "latest";
    if (!fs::exists(fs::symlink_status(latest)) || fs::is_symlink(latest)) {
      fs::remove(latest, ec);
      fs::create_directory_symlink(name + suffix, latest, ec);
    }
    return RunFolder(path);
  }
  throw Error(ErrorKind::kFailed, "OT4101", cat("'", parent, "' is full of runs named ", name));
}

RunFolder RunFolder::open(const std::string& path) {
  std::error_code ec;
  fs::create_directories(path + "/checkpoints", ec);
  if (ec)
    throw Error(ErrorKind::kFailed, "OT4101",
                cat("cannot make the run folder '", path, "': ", ec.message()),
                "choose another place:  --out FOLDER");
  return RunFolder(path);
}

void RunFolder::log_epoch(const EpochResult& e) const {
  nlohmann::ordered_json j{{"epoch", e.epoch}, {"steps", e.steps}, {"train_loss", e.train_loss}};
  std::string header = "epoch,steps,train_loss",
              row = cat(e.epoch, ",", e.steps, ",", e.train_loss);
  auto put = [&](const std::string& key, double v) {
    j[key] = v;
    header += "," + key;
    row += cat(",", v);
  };
  if (e.has_valid) put("valid_loss", e.valid_loss);
  for (const auto& [name, value] : e.metrics) put("valid_" + name, value);
  put("lr", e.rate);
  put("samples_per_second", e.samples_per_second);
  put("seconds", e.seconds);
  put("wait_seconds", e.wait_seconds);
  append_line(path_ + "/metrics.jsonl", j.dump());
  if (!fs::exists(path_ + "/metrics.csv")) append_line(path_ + "/metrics.csv", header);
  append_line(path_ + "/metrics.csv", row);
}

void RunFolder::write_text(const std::string& file, const std::string& text) const {
  write_file(path_ + "/" + file, text);
}

}  // namespace onnxtrain
