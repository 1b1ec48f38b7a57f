// A few rows of the validation data with what the model says about them, for the report: the worst
// by loss, and some that lie evenly in the data. Images are kept small.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "core/tensor.hpp"
#include "run/metrics/metrics.hpp"

namespace onnxtrain::run {

class PredictionSample {
 public:
  PredictionSample(TaskKind task, Scores scores, int64_t rows)
      : task_(task), scores_(std::move(scores)), rows_(rows) {}
  // A batch whose first row is row `first` of the data. inputs: what the model was fed.
  void add(const Tensor& output, const Tensor& target, const std::vector<Value>& inputs,
           int64_t first, int64_t rows);
  // {"kind": "classes", "worst": [...], "sample": [...]}; "" when nothing could be told.
  std::string text() const;

 private:
  struct Row {
    int64_t row = 0;
    double loss = 0;  // of this row, or the distance from the target
    std::vector<double> target, predicted;
    double probability = -1;  // of the predicted class
    int width = 0, height = 0, channels = 0;
    std::string pixels;  // base64, one byte per channel, row by row
  };
  bool judge(const double* output, int64_t k, const double* target, int64_t width, Row& r) const;
  bool is_sample(int64_t row) const;
  static nlohmann::ordered_json json_of(const Row& r);
  TaskKind task_;
  Scores scores_;
  int64_t rows_;
  std::vector<Row> worst_, sample_;
};

}  // namespace onnxtrain::run
