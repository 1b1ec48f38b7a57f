// The run folder: names of its files, and the logs that are only ever appended to.
#pragma once
#include <string>

namespace onnxtrain {

struct EpochResult;

class RunFolder {
 public:
  explicit RunFolder(std::string path) : path_(std::move(path)) {}
  // runs/NAME-001, -002, ...: the first that does not exist; made, with runs/latest pointing to it.
  static RunFolder create(const std::string& parent, const std::string& name);
  // Makes an exact folder (and checkpoints/); fine if it exists.
  static RunFolder open(const std::string& path);

  const std::string& path() const { return path_; }
  std::string model() const { return path_ + "/model.onnx"; }
  std::string last() const { return path_ + "/checkpoints/last.train.onnx"; }
  std::string best() const { return path_ + "/checkpoints/best.train.onnx"; }
  std::string config() const { return path_ + "/config.toml"; }

  void log_epoch(const EpochResult& e) const;  // metrics.jsonl, metrics.csv
  void write_text(const std::string& file, const std::string& text) const;

 private:
  std::string path_;
};

}  // namespace onnxtrain
