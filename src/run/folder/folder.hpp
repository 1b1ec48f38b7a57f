// The run folder: every file of a run, written here and nowhere else. Each file appears at once or
// grows by whole lines. The order, so that a process killed at any moment can be resumed:
//   begin   config.toml, command.txt, env.json, data.json, data.npz
//   epoch   metrics.csv, events, metrics.jsonl, confusion.json, predictions.json,
//           best.train.onnx, model.onnx, last.train.onnx, epoch-NNNN.train.onnx
//   end     env.json with the memory that was used, report.html
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "data/arrays/npz_file.hpp"
#include "run/folder/settings.hpp"
#include "run/hooks/observer.hpp"

namespace onnxtrain::run {

class Folder {
 public:
  explicit Folder(std::string path) : path_(std::move(path)) {}
  // runs/NAME-001, -002, ...: the first that does not exist; made, with runs/latest pointing to it.
  static Folder create(const std::string& parent, const std::string& name);
  // Makes an exact folder (and checkpoints/); fine if it exists. OT4101 when nothing can be written
  // there. Temporaries of processes that are gone are removed.
  static Folder open(const std::string& path);

  // A run that is here already goes into a folder of its own beside what comes, earlier-001, ...;
  // its path is returned, "" when there was none. What is no run's stays where it is.
  std::string set_aside() const;
  // Throws when there is no last checkpoint: OT4205 when the run was stopped before it wrote one or
  // the file was removed, OT4102 when the folder is no run at all.
  void require_last() const;

  const std::string& path() const { return path_; }
  std::string model() const { return path_ + "/model.onnx"; }
  std::string last() const { return path_ + "/checkpoints/last.train.onnx"; }
  std::string best() const { return path_ + "/checkpoints/best.train.onnx"; }
  std::string config() const { return path_ + "/config.toml"; }
  // How `fit` was called, in runs that an older version began from Python.
  std::string old_settings() const { return path_ + "/fit.json"; }
  // The arrays that `fit` was given, when they are small: the run can go on without them.
  std::string data() const { return path_ + "/data.npz"; }

  void write_settings(const Settings& s) const { write_text("config.toml", s.text()); }
  void append_command(const std::string& line) const;
  // Empty: the run has none that could be kept.
  void keep_data(const NamedTensors& arrays) const;

  // metrics.jsonl, metrics.csv and the event file. An epoch that ended at the same step and is in
  // the log already (the process was killed before its checkpoint) is not written again.
  void log_epoch(const EpochResult& e) const;
  void write_confusion(const std::vector<std::vector<int64_t>>& confusion) const;
  // last.train.onnx under the name of its epoch; only the newest `keep` of these stay.
  void keep_epoch(int64_t epoch, int64_t keep) const;
  void write_text(const std::string& file, const std::string& text) const;
  // The number of the last epoch in metrics.jsonl; 0 when there is none.
  int64_t logged_epochs() const;

 private:
  void log_events(const EpochResult& e) const;
  std::string path_;
};

// (name, value) of everything an epoch measured, in the order of the logs.
std::vector<std::pair<std::string, double>> epoch_numbers(const EpochResult& e);

}  // namespace onnxtrain::run
