// Metrics over batches: accumulate, then read. Sums are kept in double in a fixed order.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor.hpp"

namespace onnxtrain {

// Which metrics make sense for this output and target: accuracy for class labels (top5 when there
// are more than ten classes, perplexity when a row has several labels), mae and rmse otherwise.
enum class TaskKind { kClasses, kBinary, kRegression };

class Metrics {
 public:
  // axis: along which the classes of an output lie; threshold: of a binary output
  explicit Metrics(TaskKind task, int64_t axis = 1, double threshold = 0)
      : task_(task), axis_(axis), threshold_(threshold) {}
  void reset();
  // output: scores with the classes along `axis`, or predictions; target: labels or values. Loss:
  // mean of the batch.
  void add(const Tensor& output, const Tensor& target, double loss, int64_t rows);
  // (name, value) in the order they are printed; accuracy is a fraction.
  std::vector<std::pair<std::string, double>> values() const;
  double loss() const { return rows_ ? loss_sum_ / double(rows_) : 0; }
  // Larger is better for accuracy, smaller for everything else.
  static bool larger_is_better(const std::string& name) {
    return name == "accuracy" || name.rfind("top", 0) == 0;
  }
  // rows: true class, columns: predicted class; empty unless classes
  const std::vector<std::vector<int64_t>>& confusion() const { return confusion_; }
  // Accuracy of always guessing the most frequent class, in percent of the rows seen; 0 if unknown.
  double constant_guess() const;

 private:
  void add_classes(const Tensor& output, const Tensor& target);
  TaskKind task_;
  int64_t axis_;
  double threshold_;
  bool sequence_ = false;  // several labels per row: perplexity says something
  double loss_sum_ = 0, absolute_ = 0, square_ = 0;
  int64_t rows_ = 0, elements_ = 0, right_ = 0, right5_ = 0, classes_ = 0;
  std::vector<std::vector<int64_t>> confusion_;
};

}  // namespace onnxtrain
