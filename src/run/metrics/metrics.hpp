// Metrics over batches: accumulate, then read. Sums are kept in double in a fixed order.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor.hpp"
#include "model/scores.hpp"

namespace onnxtrain::run {

// Which metrics make sense for this output and target: accuracy (and top5, and perplexity for
// sequences) for class labels, mae and rmse otherwise.
enum class TaskKind { kClasses, kBinary, kRegression };

class Metrics {
 public:
  explicit Metrics(TaskKind task, Scores scores = {}) : task_(task), scores_(std::move(scores)) {}
  // output: scores or predictions; target: labels or values. Loss: mean of the batch.
  void add(const Tensor& output, const Tensor& target, double loss, int64_t rows);
  // A batch of which only the loss is known: the training has no target.
  void add_loss(double loss, int64_t rows);
  // (name, value) in the order they are printed; accuracy is a fraction.
  std::vector<std::pair<std::string, double>> values() const;
  // What else is known: precision, recall, f1 (means over the classes that occur) and auc (two
  // classes), or r2. One of them can be watched (FitOptions::metric).
  std::vector<std::pair<std::string, double>> more() const;
  const char* first_name() const {
    return task_ == TaskKind::kClasses || task_ == TaskKind::kBinary ? "accuracy" : "mae";
  }
  // values(), with the one of this name first, also when it is of more(); "" and "loss": as they
  // are. OT0037 when there is no such metric.
  std::vector<std::pair<std::string, double>> watched_first(const std::string& watched) const;
  // Words that no training knows (OT0037), before one has begun. name: METRIC or OUTPUT_METRIC.
  static void check_name(const std::string& name);
  // Per class: how often it was right when it was predicted, and how many of its rows were found.
  struct ClassScore {
    double precision = 0, recall = 0, f1 = 0;
    int64_t rows = 0;
  };
  std::vector<ClassScore> per_class() const;
  int64_t rows() const { return rows_; }
  double loss() const { return rows_ ? loss_sum_ / double(rows_) : 0; }
  // Larger is better for accuracy, smaller for everything else. name: METRIC or OUTPUT_METRIC.
  static bool larger_is_better(const std::string& name) {
    for (const char* n : {"accuracy", "top5", "precision", "recall", "f1", "auc", "r2"})
      if (name == n || name.ends_with(std::string("_") + n)) return true;
    return false;
  }
  // rows: true class, columns: predicted class; empty unless classes
  const std::vector<std::vector<int64_t>>& confusion() const { return confusion_; }
  // What a guess reaches that is the same for every row: the most frequent class, or the mean of
  // the targets. (name, value) as in values(); empty if unknown.
  std::vector<std::pair<std::string, double>> constant_guess() const;
  // The log loss of a guess by the classes' shares; 0 where the loss is another one.
  double constant_loss() const;

 private:
  void add_classes(const Tensor& output, const Tensor& target);
  void keep_target(const std::vector<double>& target, int64_t rows);
  TaskKind task_;
  Scores scores_;
  double loss_sum_ = 0, absolute_ = 0, square_ = 0;
  int64_t rows_ = 0, elements_ = 0, right_ = 0, right5_ = 0, classes_ = 0;
  std::vector<std::vector<int64_t>> confusion_;
  std::vector<std::vector<int64_t>> two_;  // the same of one score per row
  bool sequence_ = false;                  // a label per position, classes last
  // Score of class 1 and whether it is the right one, of two classes; given up when they are many.
  std::vector<std::pair<double, bool>> ranked_;
  bool ranks_ = true;
  void rank(double score, bool positive);
  // Targets of the rows seen, for the constant guess; given up when they are many.
  std::vector<double> targets_;
  int64_t width_ = 0;  // of a row
};

}  // namespace onnxtrain::run
