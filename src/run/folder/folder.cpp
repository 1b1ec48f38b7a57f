// Run folders on disk.
#include "run/folder/folder.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <nlohmann/json.hpp>

#include "core/file.hpp"
#include "core/shell.hpp"
#include "run/folder/epoch_log.hpp"
#include "run/folder/events.hpp"

namespace onnxtrain::run {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void cannot_make(const std::string& path, const std::string& why) {
  throw Error(ErrorKind::kFailed, "OT4101", cat("cannot make the run folder '", path, "': ", why),
              "choose another place:  --out FOLDER");
}

void point_latest(const std::string& parent, const std::string& name) {
  std::error_code ec;
  fs::path latest = fs::path(parent) / "latest";
  if (fs::exists(fs::symlink_status(latest)) && !fs::is_symlink(latest)) return;
  fs::remove(latest, ec);
  fs::create_directory_symlink(name, latest, ec);
}

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Has the log a line for this step already?
bool logged(const std::string& folder, uint64_t step) {
  for (const auto& j : epoch_lines(folder))
    if (j.value("step", uint64_t(0)) == step) return true;
  return false;
}

bool is_empty(const std::string& path) {
  std::error_code ec;
  return !fs::exists(path, ec) || fs::file_size(path, ec) == 0;
}

// The same for the csv: the step is the second column.
bool has_row(const std::string& path, uint64_t step) {
  std::ifstream in(path);
  const std::string wanted = std::to_string(step);
  for (std::string line; std::getline(in, line);) {
    const size_t begin = line.find(',') + 1, end = line.find(',', begin);
    if (begin > 0 && end != std::string::npos && line.substr(begin, end - begin) == wanted)
      return true;
  }
  return false;
}

std::string first_line(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

// Cells in the order of the header: a resumed run may measure other numbers than the first one.
std::string csv_row(const std::string& header, const std::map<std::string, std::string>& cells) {
  std::string row;
  std::istringstream names(header);
  for (std::string name; std::getline(names, name, ',');) {
    const auto it = cells.find(name);
    row += (row.empty() ? "" : ",") + (it == cells.end() ? std::string() : it->second);
  }
  return row;
}

// Appends to a file of records; one write, so a record is there as a whole or torn at the end,
// where readers stop. On a full disk it is not torn: later ones would be lost behind it.
void append_bytes(const std::string& path, const std::string& bytes) {
  std::error_code ec;
  const uintmax_t before = is_empty(path) ? 0 : fs::file_size(path, ec);
  std::ofstream out(path, std::ios::binary | std::ios::app);
  out.write(bytes.data(), std::streamsize(bytes.size()));
  out.flush();
  if (out) return;
  const int why = errno;
  fs::resize_file(path, before, ec);
  io_error(ErrorKind::kFailed, why == ENOSPC || why == EDQUOT ? "OT4012" : "OT4011", "write", path,
           why);
}

}  // namespace

Folder Folder::create(const std::string& parent, const std::string& name) {
  std::error_code ec;
  fs::create_directories(parent, ec);
  if (ec) cannot_make(parent, ec.message());
  for (int n = 1; n < 1'000'000; ++n) {
    char suffix[16];
    std::snprintf(suffix, sizeof suffix, "-%03d", n);
    std::string path = parent + "/" + name + suffix;
    if (!fs::create_directory(path, ec)) {
      if (ec && ec != std::errc::file_exists) cannot_make(path, ec.message());
      continue;
    }
    Folder folder = open(path);
    point_latest(parent, name + suffix);
    return folder;
  }
  cannot_make(parent, cat("it is full of runs named ", name));
}

Folder Folder::open(const std::string& path) {
  std::error_code ec;
  fs::create_directories(path + "/checkpoints", ec);
  if (ec) cannot_make(path, ec.message());
  Folder folder(path);
  for (const std::string& part : {path, path + "/checkpoints"})
    if (access(part.c_str(), W_OK | X_OK) != 0)
      cannot_make(path, cat("'", part, "' cannot be written to"));
  for (const std::string& file :
       {folder.last(), folder.best(), folder.model(), folder.config(), folder.data()})
    remove_stale_temporaries(file);
  return folder;
}

std::string Folder::set_aside() const {
  std::error_code ec;
  if (is_empty(path_ + "/metrics.jsonl") && !fs::exists(last(), ec)) return {};
  std::string to;
  for (int n = 1; to.empty() || !fs::create_directory(to, ec); ++n) {
    if (ec && ec != std::errc::file_exists) cannot_make(to, ec.message());
    char name[24];
    std::snprintf(name, sizeof name, "/earlier-%03d", n);
    to = path_ + name;
  }
  auto is_ours = [](const std::string& name) {
    for (const char* x : {"checkpoints", "config.toml", "command.txt", "env.json", "metrics.jsonl",
                          "metrics.csv", "report.html", "confusion.json", "predictions.json",
                          "data.json", "operators.json", "fit.json", "data.npz"})
      if (name == x) return true;
    return name.starts_with("model.onnx") || name.starts_with("events.out.tfevents.");
  };
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path_, ec))
    if (is_ours(entry.path().filename().string()))
      names.push_back(entry.path().filename().string());
  // what makes it a run goes last: when the process is killed in between, the rest follows at the
  // next beginning
  std::stable_partition(names.begin(), names.end(), [](const std::string& name) {
    return name != "checkpoints" && name != "metrics.jsonl";
  });
  for (const std::string& name : names) {
    fs::rename(path_ + "/" + name, to + "/" + name, ec);
    if (ec)
      cannot_make(path_, cat("'", name, "' of the run before cannot be moved: ", ec.message()));
  }
  open(path_);  // checkpoints/ again
  return to;
}

void Folder::require_last() const {
  if (fs::exists(last())) return;
  const auto has = [&](const char* name) { return fs::exists(path_ + name); };
  const std::string above = fs::path(path_ + "/").parent_path().parent_path().string();
  if (!has("/checkpoints"))
    throw Error(ErrorKind::kCheckpoint, "OT4102",
                cat("'", path_, "' is no run: it holds no checkpoints/last.train.onnx"),
                !above.empty() && has("/last.train.onnx")
                    ? cat("the run is the folder above:  ", shell_word(above))
                    : std::string("onnxtrain runs   lists the runs there are"));
  std::string command;
  std::ifstream in(path_ + "/command.txt");
  std::getline(in, command);
  if (!is_empty(path_ + "/metrics.jsonl") || fs::exists(best()))
    throw Error(ErrorKind::kCheckpoint, "OT4205",
                cat("checkpoints/last.train.onnx of run '", path_, "' is gone"),
                fs::exists(best()) ? cat("go on from the best one in another folder:  onnxtrain "
                                         "train --resume ",
                                         shell_word(best()), " --out runs/other")
                                   : "bring the file back, or start again");
  throw Error(ErrorKind::kCheckpoint, "OT4205",
              cat("run '", path_,
                  "' was stopped before its first checkpoint: nothing is there to go on from"),
              command.empty() ? "start it again" : cat("start it again:  ", command));
}

std::vector<std::pair<std::string, double>> epoch_numbers(const EpochResult& e) {
  std::vector<std::pair<std::string, double>> n{{"train_loss", e.train_loss}};
  if (e.has_valid) n.emplace_back("valid_loss", e.valid_loss);
  for (const auto& [name, value] : e.metrics) n.emplace_back("valid_" + name, value);
  n.emplace_back("lr", e.lr);
  if (e.gradient_norm >= 0) n.emplace_back("gradient_norm", e.gradient_norm);
  n.emplace_back("samples_per_second", e.samples_per_second);
  n.emplace_back("seconds", e.seconds);
  n.emplace_back("wait_seconds", e.wait_seconds);
  return n;
}

void Folder::log_epoch(const EpochResult& e) const {
  if (logged(path_, e.step)) return;
  nlohmann::ordered_json j{{"epoch", e.epoch}, {"step", e.step}, {"steps", e.steps}};
  std::map<std::string, std::string> cells{{"epoch", std::to_string(e.epoch)},
                                           {"step", std::to_string(e.step)},
                                           {"steps", std::to_string(e.steps)}};
  std::string header = "epoch,step,steps";
  for (const auto& [key, v] : epoch_numbers(e)) {
    j[key] = v;
    header += "," + key;
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", v);
    cells[key] = text;
  }
  if (e.watches_loss && !e.metrics.empty()) j["watched"] = "valid_loss";
  if (e.best) j["best"] = e.best_because;
  const std::string csv = path_ + "/metrics.csv";
  const bool begins = is_empty(csv);
  const std::string row = csv_row(begins ? header : first_line(csv), cells);
  // the csv may have a row that the other log lacks: the disk was full in between
  if (!has_row(csv, e.step)) append_line(csv, begins ? header + "\n" + row : row);
  log_events(e);
  append_line(path_ + "/metrics.jsonl", j.dump());
}

// One event file per run; a resumed run appends to it.
void Folder::log_events(const EpochResult& e) const {
  std::string file;
  for (const auto& entry : fs::directory_iterator(path_))
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) file = entry.path();
  std::string bytes;
  double now = wall_time();
  if (file.empty()) {
    file = cat(path_, "/events.out.tfevents.", int64_t(now), ".onnxtrain");
    bytes = event_record(version_event(now));
  }
  bytes += event_record(scalars_event(now, int64_t(e.step), epoch_numbers(e)));
  append_bytes(file, bytes);
}

void Folder::write_confusion(const std::vector<std::vector<int64_t>>& confusion) const {
  write_text("confusion.json", nlohmann::json(confusion).dump() + "\n");
}

void Folder::append_command(const std::string& line) const {
  append_line(path_ + "/command.txt", line);
}

void Folder::keep_data(const NamedTensors& arrays) const {
  std::error_code ec;
  if (arrays.empty())
    fs::remove(data(), ec);
  else
    write_npz(data(), arrays);
}

void Folder::keep_epoch(int64_t epoch, int64_t keep) const {
  char name[40];
  std::snprintf(name, sizeof name, "/checkpoints/epoch-%04lld.train.onnx",
                static_cast<long long>(epoch));
  std::error_code ec;
  fs::remove(path_ + name, ec);
  fs::create_hard_link(last(), path_ + name, ec);
  if (ec) fs::copy_file(last(), path_ + name, fs::copy_options::overwrite_existing);
  std::vector<std::string> kept;
  for (const auto& entry : fs::directory_iterator(path_ + "/checkpoints"))
    if (entry.path().filename().string().starts_with("epoch-")) kept.push_back(entry.path());
  std::sort(kept.begin(), kept.end());
  for (size_t k = 0; k + size_t(keep) < kept.size(); ++k) fs::remove(kept[k], ec);
}

int64_t Folder::logged_epochs() const {
  int64_t last = 0;
  for (const auto& j : epoch_lines(path_)) last = std::max(last, j.value("epoch", int64_t(0)));
  return last;
}

void Folder::write_text(const std::string& file, const std::string& text) const {
  write_file(path_ + "/" + file, text);
}

}  // namespace onnxtrain::run
