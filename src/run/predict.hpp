// Predictions and scores of a model, a checkpoint or a run on data by name.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "distributed/communicator.hpp"
#include "engine/session.hpp"
#include "run/data/parts.hpp"
#include "run/folder/folder.hpp"
#include "run/metrics/metrics.hpp"
#include "run/metrics/other_outputs.hpp"

namespace onnxtrain::run {

// What the numbers of an output are.
struct OutputMeaning {
  bool has_classes = false;  // a score per class
  // How the rows become probabilities: "softmax" over a row, "sigmoid" of each number, "none" when
  // they are probabilities already; empty: they are no scores of classes.
  std::string to_probabilities;
  std::vector<std::string> classes;  // names of class 0, 1, ...; may be empty
  std::optional<double> threshold;   // one score for two classes: above it, class 1
};

// One output of the model for every row.
struct PredictedOutput : OutputMeaning {
  std::string name;
  Tensor rows;
  // Names of the columns of `rows` that the output itself gives (a ZipMap's keys); may be empty.
  std::vector<std::string> columns;
};

struct Predictions {
  std::vector<PredictedOutput> outputs;  // in the model's order, those with a value per row
  size_t main = 0;                       // the output that was trained; scores rather than labels
  std::vector<std::string> row_names;    // files of images; may be empty
};

// Processes that are given share the batches out, and all get the result, to the bit that of one.

// A run folder: its model.onnx. Columns, scaling and classes are those of the training.
Predictions predict(const std::string& run_or_model, const DataRequest& q, int64_t batch,
                    const ProgramOptions& program, Observer& observer,
                    Communicator* processes = nullptr);

// Of an output whose rows have this shape. names: how many classes the caller has names for; 0:
// those that the file knows.
OutputMeaning meaning_of_output(const Model& m, const std::string& output, const Shape& rows,
                                size_t names);

// Scores of classes become probabilities; OT0038 when no output holds any.
void make_probabilities(Predictions& p);

// which: best or last checkpoint of a run. A model without training is scored with the loss that
// fits it.
Evaluation evaluate(const std::string& run_or_model, const std::string& which, const DataRequest& q,
                    DataPart part, int64_t batch, const ProgramOptions& program, Observer& observer,
                    Communicator* processes = nullptr);

// Largest difference between model.onnx and the main graph of the best checkpoint on some rows;
// none when there is nothing to compare with.
std::optional<double> export_difference(const Folder& folder, const FeedColumns& sample,
                                        const ProgramOptions& program);

}  // namespace onnxtrain::run
