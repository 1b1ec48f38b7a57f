// The run folder: names of its files, and the logs that are only ever appended to.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace onnxtrain {

struct EpochResult;

class RunFolder {
 public:
  explicit RunFolder(std::string path) : path_(std::move(path)) {}
  // runs/NAME-001, -002, ...: the first that does not exist; made, with runs/latest pointing to it.
  static RunFolder create(const std::string& parent, const std::string& name);
  // Makes an exact folder (and checkpoints/); fine if it exists. OT4101 when nothing can be written
  // there. Temporaries of processes that are gone are removed.
  static RunFolder open(const std::string& path);

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

}  // namespace onnxtrain
